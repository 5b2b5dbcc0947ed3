package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/wakeup"
)

const usage = `usage: gozkd top [flags]

Shows an ensemble of gozkd or Apache ZooKeeper live: members, rates, latencies, clients, hot paths.
It discovers the members that -server does not name.

The servers' 4lw.commands.whitelist must contain the words that top asks: srvr, mntr, cons, conf,
and hotp for gozkd.

flags:
  -server HOST:PORT,...  servers to begin with (localhost:2181)
  -interval TIME         interval between two rounds (2s)
  -timeout TIME          timeout for each answer (3s)
  -once                  print one screen of text after two rounds and exit
  -output text|json      json: print an object per round, one per line (text)
` + clientflags.Usage + `
Press ? on the screen for the keys.
Exit status: 0; 1 if no member answered with -once; 2 if the command line is wrong.
`

type options struct {
	servers           []string
	interval, timeout time.Duration
	once, json        bool
	security          *clientflags.Security
}

// minRoundInterval limits the load on the servers.
const minRoundInterval = 100 * time.Millisecond

// parse reads the flags. Its error is for cli.Command.End.
func (o *options) parse(env cli.Env, args []string) error {
	fs := flag.NewFlagSet("top", flag.ContinueOnError)
	servers := fs.String("server", "localhost:2181", "")
	fs.DurationVar(&o.interval, "interval", 2*time.Second, "")
	fs.DurationVar(&o.timeout, "timeout", 3*time.Second, "")
	fs.BoolVar(&o.once, "once", false, "")
	cli.OutputFlag(fs, &o.json)
	var secure clientflags.Flags
	secure.Register(fs)
	words, security, err := secure.Parse(env, fs, args)
	if err != nil {
		return err
	}
	o.security = security
	// Clients' connect strings are accepted: four-letter words ignore a chroot.
	addresses, _, err := client.ParseServers(*servers)
	slices.Sort(addresses)
	o.servers = slices.Compact(addresses)
	switch {
	case len(words) > 0:
		err = fmt.Errorf("unexpected argument %q: use -server to name servers", words[0])
	case o.interval < minRoundInterval:
		err = fmt.Errorf("-interval must be at least %v", minRoundInterval)
	case o.timeout <= 0:
		err = errors.New("-timeout must be a positive duration, such as 3s")
	}
	if err != nil {
		err = cli.UsageError{Err: err}
	}
	return err
}

// Main is gozkd top.
func Main(ctx context.Context, args []string, env cli.Env) int {
	var o options
	c := cli.Command{Env: env, Name: "top", Usage: usage}
	if err := o.parse(env, args); err != nil {
		return c.End(err)
	}
	asker := probe.Asker{Timeout: o.timeout, Dial: o.security.Dial, Advise: o.security.Advice}
	r := newRoster(o.servers, aliases(ctx, o.servers, o.timeout))
	r.secure = o.security.TLS()
	w := &watcher{roster: r, interval: o.interval, ask: asker.Ask, discover: discoverer(o.timeout, o.security)}
	var err error
	if screen, ok := env.Out.(*os.File); o.once || o.json {
		err = stream(ctx, w, o, env.Out)
	} else if ok && term.IsTerminal(int(screen.Fd())) {
		err = onTerminal(ctx, w, o, env, screen)
	} else {
		return c.Misused(errors.New("standard output is not a terminal: use -once or -output json"))
	}
	return c.End(err)
}

// onTerminal shows the screen on a terminal, whose mode it restores.
func onTerminal(ctx context.Context, w *watcher, o options, env cli.Env, screen *os.File) (err error) {
	if in, ok := env.In.(*os.File); ok && console.IsTerminal(in, screen) {
		restore, failed := console.Raw(in, screen)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	size := func() (width, height int, err error) { return term.GetSize(int(screen.Fd())) }
	return show(ctx, w, newModel(colors(env.Getenv), o.interval), &display{keys: env.In, out: screen, size: size})
}

// show runs the screen until the user or ctx ends it.
func show(ctx context.Context, w *watcher, m *model, d *display) error {
	hurry := make(chan struct{}, 1) // capacity 1: later key presses are redundant
	w.hurry, m.refresh = hurry, func() { wakeup.Send(hurry) }
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports := make(chan Report)
	watching.Go(func() { // ended by cancel, and awaited
		w.run(ctx, func(r Report) {
			select {
			case reports <- r:
			case <-ctx.Done():
			}
		})
	})
	return d.run(ctx, m, reports)
}
