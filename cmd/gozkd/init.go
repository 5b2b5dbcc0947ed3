package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
)

const initUsage = `usage: gozkd init [--id N] [--config FILE]

Creates the data directories that zoo.cfg names and the file initialize in dataDir: with
db.autocreate=false, a server without data takes part in founding an ensemble only if the file is
there. So run init on each server of a new ensemble, and never on a server whose data is lost: that
server joins the others. With --id, init also writes the number of this server to the file myid.
Only a member of an ensemble needs a number, which --id of serve and ZOO_MY_ID can give as well.

flags:
  --id N              the number of this server; also --myid, as for zkServer-initialize.sh
  --config FILE       the zoo.cfg; default: zoo.cfg in the directory ZOOCFGDIR or ZOO_CONF_DIR; also
                      --configfile
  --data-dir DIR      replaces dataDir of the zoo.cfg
  -o KEY=VALUE        sets a key of zoo.cfg, as for serve; may be repeated
  --found-until TIME  for automation that runs init before each start: with existing data, or after TIME
                      (2026-11-23T12:00:00Z or 2026-11-23 12:00 in UTC; empty: always), do nothing,
                      with exit status 0
  --force             accepted for compatibility; existing data is never deleted

Exit status: 0 on success, 1 if data exists already or cannot be written, 2 if the command line is
wrong.
`

// initialize prepares the data directories of a server, as zkServer-initialize.sh does.
func initialize(_ context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "init", Usage: initUsage}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	id := flags.String("id", "", "")
	file := flags.String("config", "", "")
	dir := flags.String("data-dir", "", "")
	serve := []string{"serve"}
	flags.Func("o", "", func(text string) error { serve = append(serve, "-o", text); return nil })
	var until *string
	flags.Func("found-until", "", func(text string) error { until = &text; return nil })
	flags.Bool("force", false, "")
	cli.Alias(flags, "myid", "id", "configfile", "config", "until", "found-until")
	words, err := cli.ParseFlags(flags, args)
	switch {
	case err != nil:
		return c.End(err)
	case len(words) > 0:
		return c.Misused(fmt.Errorf("unexpected argument %q", words[0]))
	}
	for name, value := range map[string]string{"--id": *id, "--data-dir": *dir} {
		if value != "" {
			serve = append(serve, name, value)
		}
	}
	if *file != "" {
		serve = append(serve, *file)
	}
	_, cfg, err := config.Load(serve, env.Getenv, env.Names())
	if err == nil && until != nil {
		if data := existingData(cfg); data != "" {
			return printTo(env, data+" exists: nothing is done.\n")
		}
		var end time.Time // if the text is empty, the time is over
		if *until != "" {
			if end, err = cli.ParseTime(*until); err != nil {
				return c.Misused(fmt.Errorf("--found-until (foundUntil of the Helm chart): %w", err))
			}
		}
		if !time.Now().Before(end) {
			return printTo(env, "A new server may not found an ensemble any more: nothing is done.\n")
		}
	}
	if err == nil {
		err = prepareDirectories(cfg, *id != "")
	}
	if err != nil {
		return fail(env, fmt.Errorf("init: %w", err))
	}
	return printTo(env, cfg.Server.Dir+" is ready for a new server.\n")
}

// existingData returns the path of a server's data, or "" if there is none. A server that waits to
// be let in has a log, which holds no data: the operator may run init afterwards.
func existingData(c config.Config) string {
	checkpoint, log := filepath.Join(c.Server.Dir, "checkpoint.db"), filepath.Join(c.Server.LogDir, "wal")
	if _, err := os.Stat(checkpoint); err == nil {
		return checkpoint
	}
	files, err := os.ReadDir(log)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if len(files) > 0 { // otherwise the log is lost, with all that it held
		if _, err := consensus.ReadDir(c.Server.Dir, c.Server.LogDir, &replica.Replica{}); errors.Is(err, consensus.ErrNoState) {
			return ""
		}
	}
	return log
}

// prepareDirectories creates the data directories, the file initialize and, if writeID, myid.
func prepareDirectories(c config.Config, writeID bool) error {
	if err := consensus.CheckUnused(c.Server.Dir); err != nil {
		return err
	}
	if path := existingData(c); path != "" {
		return fmt.Errorf("%s exists: init does not change the data of a server; move it away, or choose another directory", path)
	}
	for _, dir := range []string{c.Server.Dir, c.Server.LogDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(c.Server.Dir, initializeFile), nil, 0o644); err != nil || !writeID {
		return err
	}
	return os.WriteFile(filepath.Join(c.Server.Dir, "myid"), fmt.Appendln(nil, memberid.Number(c.MyID)), 0o644)
}
