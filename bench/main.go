//go:build linux

package main

import (
	"context"
	_ "embed" // usage.txt
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

//go:embed usage.txt
var usage string

func main() { must.Program("bench", run) }

// settings holds the values of the flags.
type settings struct {
	servers  []server.Kind
	starts   int
	rounds   int
	seconds  time.Duration
	warm     time.Duration
	rows     string
	shapes   []shape
	sessions int
	watches  int
	znodes   int
	kills    int
	members  int
	waiters  int
	tlsKeys  map[string]string // of zoo.cfg, with -tls
	out      *output
}

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if peer := map[string]func(context.Context, []string){"recipes-peer": recipesPeer, "waiters-peer": waitersPeer}[command]; peer != nil {
		peer(ctx, args) // started by recipes or waiters
		return
	}
	var s settings
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage) // an error of printing to standard error cannot be reported
		flags.PrintDefaults()
	}
	servers := flags.String("servers", "gozkd,zookeeper-3.9", "comma-separated: gozkd, zookeeper-3.8, zookeeper-3.9")
	binary := flags.String("gozkd", "", "the gozkd to measure (default: build cmd/gozkd)")
	shapes := flags.String("shapes", "1x1,100x1,16x16", "connections x requests in flight on each")
	flags.StringVar(&s.rows, "rows", "", "throughput, scale, watches, ensemble, recipes, waiters: only rows whose name has this prefix")
	flags.IntVar(&s.starts, "starts", 20, "start: number of starts of gozkd; of others a fifth of it")
	flags.IntVar(&s.rounds, "rounds", 3, "throughput, scale, tls, ensemble, recipes: measured rounds of each row, shape and server")
	flags.DurationVar(&s.seconds, "time", 5*time.Second, "throughput, scale, tls, ensemble, recipes: length of a round")
	flags.DurationVar(&s.warm, "warm", 10*time.Second, "throughput, scale, tls, ensemble, connects, watches: unmeasured load before the first round of a row; recipes: before each round")
	flags.IntVar(&s.sessions, "sessions", 5000, "resident, crowd: number of sessions")
	flags.IntVar(&s.watches, "watches", 10, "crowd: number of watches of each session")
	flags.IntVar(&s.znodes, "znodes", 1_000_000, "start, resident, calm: number of znodes, a multiple of 1000; scale: at most this many")
	flags.IntVar(&s.members, "members", nMembers, "ensemble: number of members")
	flags.IntVar(&s.kills, "kills", 20, "failover: how often the leader of each ensemble is killed")
	flags.IntVar(&s.waiters, "waiters", 10_000, "waiters: how many wait at once")
	withTLS := flags.Bool("tls", false, "throughput: clients speak TLS; connects: with certificates on both sides and full handshakes")
	out := flags.String("out", "", "a directory for Markdown, JSON and pictures")
	must.Parsed(flags.Parse(args))
	if command == "compare" {
		must.Do(setCompareDefaults(flags))
	}
	if flags.NArg() > 0 {
		must.Failf("unexpected argument %q", flags.Arg(0))
	}
	s.shapes = must.Get(parseShapes(*shapes))
	if s.kills < 1 {
		must.Failf("%d kills: want at least one", s.kills)
	}
	run := map[string]func(context.Context, *settings){"waiters": benchWaiters, "crowd": benchCrowd}
	for _, part := range compareParts() {
		run[part.name] = part.run
	}
	switch {
	case *withTLS && command != "throughput" && command != "connects":
		must.Failf("-tls is for throughput and connects")
	case command == "bare" || command == "bare-synced": // started by limits
		serveBare(command == "bare-synced")
		return
	case command != "compare" && run[command] == nil:
		flags.Usage()
		must.Failf("no command %q", command)
	}
	s.out = newOutput(*out)
	dir := must.Get(os.MkdirTemp("", "gozkd-bench-"))
	defer func() { _ = os.RemoveAll(dir) }() // a leftover temporary directory is no error
	if *withTLS {
		s.tlsKeys = useTLS(dir, command == "connects")
	}
	if command != "limits" && command != "targets" { // these need no server
		s.servers = kinds(ctx, *servers, *binary, dir)
	}
	s.out.machine = machine(dir)
	s.out.conditions = s.conditions(commit(ctx))
	if command == "compare" {
		benchCompare(ctx, &s, args)
		return
	}
	s.out.begin(command, args)
	must.Do(s.out.end(command, must.Try(func() { run[command](ctx, &s) })))
}

// comparePart is a command that compare runs, and how it changes the settings.
type comparePart struct {
	name   string
	run    func(context.Context, *settings)
	change func(*settings)
}

// compareParts lists the commands whose figures the goals need.
func compareParts() []comparePart {
	asTold := func(*settings) {}
	return []comparePart{
		{"limits", benchLimits, asTold},
		{"start", benchStart, asTold},
		{"throughput", benchThroughput, asTold},
		{"connects", benchConnects, asTold},
		{"tls", benchTLS, asTold},
		{"scale", benchScale, func(s *settings) { s.shapes = []shape{{16, 16}} }},
		{"watches", benchWatches, asTold},
		{"resident", benchResident, asTold},
		{"ensemble", benchEnsemble, asTold},
		{"failover", benchFailover, asTold},
		{"calm", benchCalm, asTold},
		{"recipes", benchRecipes, func(s *settings) { s.rows, s.warm = "handover", min(s.warm, 4*time.Second) }},
		{"targets", benchTargets, asTold},
	}
}

// compareDefaults are the flags that compare sets unless they are given: short rounds, about
// an hour in all.
var compareDefaults = map[string]string{"time": "2s", "kills": "5", "starts": "10", "out": ".cache/bench"}

func setCompareDefaults(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	for name, value := range compareDefaults {
		if !given[name] {
			err = errors.Join(err, flags.Set(name, value))
		}
	}
	return err
}

// benchCompare runs all parts, also after failures. It reports its progress on standard error, and
// at the end what went wrong.
func benchCompare(ctx context.Context, s *settings, args []string) {
	start := time.Now()
	parts := compareParts()
	var all error
	for i, part := range parts {
		settings := *s
		part.change(&settings)
		progress("compare: %d of %d, %s; %s since the start", i+1, len(parts), part.name, time.Since(start).Round(time.Second))
		s.out.conditions = settings.conditions(s.out.conditions.Commit)
		s.out.begin(part.name, args)
		err := s.out.end(part.name, must.Try(func() { part.run(ctx, &settings) }))
		if ctx.Err() != nil {
			must.Do(errors.Join(ctx.Err(), err))
			return
		}
		all = errors.Join(all, err)
	}
	progress("compare: %s in all", time.Since(start).Round(time.Second))
	must.Do(all)
}
