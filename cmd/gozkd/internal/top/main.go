package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

const usage = `usage: gozkd top [flags]

Shows an ensemble live: members, rates, latencies, clients, hot paths. The members that are not named are found by asking those that are.
It works with Apache ZooKeeper too. What it asks for must be in 4lw.commands.whitelist: srvr, mntr, cons, conf, and hotp of gozkd.

flags:
  -server HOST:PORT,...  members to begin with (localhost:2181)
  -interval TIME         between two rounds of questions (2s)
  -timeout TIME          wait so long for an answer (3s)
  -once                  print one screen's worth of text after two rounds, and end
  -output text|json      json: an object on a line for each round, without a screen (text)

Keys on the screen: ? shows them.
Exit status: 0; 1 if with -once no member answered; 2 when the command line is wrong.
`

// options are what the command line says.
type options struct {
	servers           []string
	interval, timeout time.Duration
	once, json        bool
}

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("top", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the usage follows the error, on Err
	servers := fs.String("server", "localhost:2181", "")
	fs.DurationVar(&o.interval, "interval", 2*time.Second, "")
	fs.DurationVar(&o.timeout, "timeout", 3*time.Second, "")
	fs.BoolVar(&o.once, "once", false, "")
	output := fs.String("output", "text", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("what is %q? Servers are named with -server", fs.Arg(0))
	case o.interval < leastInterval:
		return o, fmt.Errorf("-interval is %v at least", leastInterval)
	case o.timeout <= 0:
		return o, errors.New("-timeout is a time such as 3s")
	case *output != "text" && *output != "json":
		return o, fmt.Errorf("-output is text or json, not %q", *output)
	}
	o.json = *output == "json"
	// A connect string of clients may be given as it is: the words know no chroot.
	o.servers, _, err = client.ParseServers(*servers)
	slices.Sort(o.servers)
	o.servers = slices.Compact(o.servers)
	return o, err
}

// leastInterval is what servers can be asked to bear.
const leastInterval = 100 * time.Millisecond

// Main is gozkd top.
func Main(ctx context.Context, args []string, env cli.Env) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(env.Out, usage) // when Out fails there is nowhere to say so
		return cli.OK
	}
	screen, isTerminal := env.Out.(*os.File)
	isTerminal = isTerminal && term.IsTerminal(int(screen.Fd()))
	if err == nil && !isTerminal && !o.once && !o.json {
		err = errors.New("standard output is no terminal: use -once, or -output json")
	}
	if err != nil {
		fmt.Fprintf(env.Err, "gozkd top: %v\n\n%s", err, usage)
		return cli.Usage
	}
	w := newWatcher(ctx, o)
	switch {
	case o.once, o.json:
		err = stream(ctx, w, o, env.Out)
	default:
		err = show(ctx, w, o, tea.WithInput(env.In), tea.WithOutput(screen), tea.WithEnvironment(environment(env.Getenv)))
	}
	if err != nil {
		fmt.Fprintln(env.Err, "gozkd top:", err)
		return cli.Failed
	}
	return cli.OK
}

func newWatcher(ctx context.Context, o options) *watcher {
	asker := probe.Asker{Timeout: o.timeout}
	return &watcher{
		roster: newRoster(o.servers, places(ctx, o.servers, o.timeout)), interval: o.interval, ask: asker.Ask, discover: discoverer(o.timeout),
	}
}

// show runs the screen until its user or ctx ends it.
func show(ctx context.Context, w *watcher, o options, terminal ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	hurry := make(chan struct{}, 1) // one key press waits at most
	w.hurry = hurry
	m := newModel(colors(), o.interval, func() {
		select {
		case hurry <- struct{}{}:
		default:
		}
	})
	// Signals are the program's, which ends ctx.
	p := tea.NewProgram(m, append(terminal, tea.WithContext(ctx), tea.WithoutSignalHandler())...)
	watched := make(chan struct{})
	// Ended by cancel, and awaited below. Send gives up when the program has ended.
	go func() {
		defer close(watched)
		w.run(ctx, func(r Report) { p.Send(r) })
	}()
	_, err := p.Run()
	signalled := ctx.Err() != nil
	cancel()
	<-watched
	if signalled && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// environment returns those variables that say what a terminal can do.
func environment(getenv func(string) string) []string {
	var list []string
	for _, name := range []string{
		"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM", "TMUX", "STY", "SSH_TTY", "WT_SESSION", "ConEmuANSI",
	} {
		if v := getenv(name); v != "" {
			list = append(list, name+"="+v)
		}
	}
	return list
}
