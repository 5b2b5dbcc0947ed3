package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

const standbyUsage = `usage: gozkd standby URL --into DIR [--ensemble-id ID] [flags of serve] [zoo.cfg]
       gozkd standby promote DIR (gozkd standby promote --help)

Follows the archive of an ensemble, at another site, and keeps its state in DIR/standby. Serves reads
and watches to clients that accept a read-only server. gozkd standby promote founds a new ensemble
from it, with the sessions.

The loss is then what was not archived: at most gozkd.archive.intervalMs of the ensemble (3 s) while
its archive works; the metric gozkd_standby_time_seconds is the time of the last write that is here.

URL is an archive: file:///DIRECTORY or s3://BUCKET/PREFIX, as gozkd.archive.url of the ensemble names it

flags:
  --into DIR         the directory, which must not have the data of a server
  --ensemble-id ID   the ensemble, if there are objects of several
  zoo.cfg and the rest: as for serve. gozkd.archive.intervalMs is how often the standby looks; dataDir,
                     the servers of the ensemble, and the other keys of the archive have no effect
`

func standby(ctx context.Context, args []string, env cli.Env) int {
	if len(args) > 0 && args[0] == "promote" {
		return backup.Promote(ctx, args[1:], env)
	}
	c := cli.Command{Env: env, Name: "standby", Usage: standbyUsage}
	var follows config.Standby
	hasScheme := regexp.MustCompile(`^[a-z0-9]+:/`).MatchString
	if i := slices.IndexFunc(args, hasScheme); i >= 0 {
		follows.URL, args = args[i], slices.Delete(slices.Clone(args), i, i+1)
	}
	load := func() (*config.Invocation, config.Config, error) {
		flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
		flags.StringVar(&follows.Into, "into", "", "")
		flags.StringVar(&follows.Ensemble, "ensemble-id", "", "")
		dir := func() string { return (&backup.Standby{Into: follows.Into}).Dir() }
		inv, cfg, err := config.LoadFlags(flags, args, env.Getenv, env.Names(), dir)
		cfg.Standby, cfg.Server.Standby, cfg.Server.ReadOnlyMode = follows, true, true
		cfg.Server.Words = append(cfg.Server.Words, "mntr") // for gozkd status
		cfg.MyID, cfg.Archive.URL, cfg.ScaleURL, cfg.Found = backup.StandbyID, "", "", false
		return inv, cfg, err
	}
	inv, cfg, err := load()
	for _, w := range inv.Warnings {
		cli.Print(env.Err, "gozkd: warning: "+w+"\n")
	}
	switch {
	case inv.Command == config.ShowHelp:
		cli.Print(env.Out, c.Usage)
		return cli.OK
	case err != nil:
		return c.Misused(err)
	case follows.URL == "" || follows.Into == "":
		return c.Misused(errors.New("name the URL of the archive, and the directory --into DIR"))
	case !store.IsURL(follows.URL):
		return c.Misused(fmt.Errorf("%s is no archive. A standby does not follow servers: name what gozkd.archive.url "+
			"of the ensemble names, file:///DIRECTORY or s3://BUCKET/PREFIX", store.ShownURL(follows.URL)))
	case cfg.Memory || inv.Ensemble > 0:
		return c.Misused(errors.New("a standby keeps its data in a directory: leave out --memory and --ensemble"))
	}
	if err := serve(inv, cfg, load, env); err != nil {
		return fail(env, err)
	}
	return cli.OK
}

// follower feeds this process's server from an archive; nil: the server is no standby.
type follower struct{ standby *backup.Standby }

// openFollower prepares the data of a standby, and sets what the server must know.
func openFollower(
	ctx context.Context, c config.Config, cfg *server.Config, getenv func(string) string, log hclog.Logger,
) (*follower, error) {
	if c.Standby.URL == "" {
		return nil, nil
	}
	place, err := store.Open(c.Standby.URL, getenv)
	if err != nil {
		return nil, err
	}
	f := &follower{&backup.Standby{
		Store: place, URL: c.Standby.URL, Ensemble: c.Standby.Ensemble, Into: c.Standby.Into,
		Interval: c.Archive.Interval, Logger: log.Named("standby"),
	}}
	cfg.StandbyStats = f.standby.Stats
	return f, f.standby.Prepare(ctx)
}

// whileStarting is that of the reloader. The start of a standby ends when ctx does, or when the
// standby cannot go on: then the error is that of backup.Standby.
func (f *follower) whileStarting(ctx context.Context, r *reloader) error {
	following, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end(nil)
	if f != nil {
		// Stopped and awaited by the deferred calls.
		running.Go(func() { end(f.standby.Run(following, r.server.Backups(), r.server.Facts().Digest)) })
	}
	return r.whileStarting(following, time.Second, r.server.Start)
}
