package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

const initUsage = `usage: gozkd init [--myid N] [--configfile FILE]

Creates the data directories that the zoo.cfg names, and writes the number of this server into the file myid. A server that is
started does the first itself, and needs the second only in an ensemble, unless --id or ZOO_MY_ID say it.

flags:
  --myid N           the number of this server
  --configfile FILE  the zoo.cfg; else that in the folder ZOOCFGDIR or ZOO_CONF_DIR
  --data-dir DIR     instead of the zoo.cfg's dataDir
  --force            is accepted, and deletes nothing: directories with data are left alone

Exit status: 0 when it is done, 1 when there is data already or it can't be written, 2 when the command line is wrong.
`

// initialize prepares the data directories of a server, as zkServer-initialize.sh does.
func initialize(_ context.Context, args []string, env cli.Env) int {
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage follows the error, on Err
	id := flags.String("myid", "", "")
	file := flags.String("configfile", "", "")
	dir := flags.String("data-dir", "", "")
	flags.Bool("force", false, "")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		if _, err := io.WriteString(env.Out, initUsage); err != nil {
			return failed(env, err)
		}
		return cli.OK
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is one word too many", flags.Arg(0))
	}
	if err != nil {
		failed(env, "init:", err)
		_, _ = fmt.Fprint(env.Err, "\n", initUsage) // when Err fails there is nowhere left to say so
		return cli.Usage
	}
	words := []string{"serve"}
	for name, value := range map[string]string{"--id": *id, "--data-dir": *dir} {
		if value != "" {
			words = append(words, name, value)
		}
	}
	if *file != "" {
		words = append(words, *file)
	}
	inv, err := config.Load(words, env.Getenv, nil)
	if err != nil {
		return failed(env, "init:", err)
	}
	if err := prepare(inv.Config, *id); err != nil {
		return failed(env, "init:", err)
	}
	if _, err := fmt.Fprintf(env.Out, "%s is ready for a new server.\n", inv.Config.DataDir); err != nil {
		return failed(env, err)
	}
	return cli.OK
}

// prepare creates the directories, and the file myid if there is an id for it.
func prepare(c config.Config, id string) error {
	for _, path := range []string{filepath.Join(c.DataDir, "checkpoint.db"), filepath.Join(c.DataLogDir, "wal")} {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s is there: the data of a server is not touched; move it away, or take another directory", path)
		}
	}
	for _, dir := range []string{c.DataDir, c.DataLogDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if id == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(c.DataDir, "myid"), fmt.Appendln(nil, c.MyID), 0o644)
}
