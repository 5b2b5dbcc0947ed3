//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const usage = `usage: bench command [flags]

commands
  start       from the start of the process to the first answered create
  limits      a bare Go server, without any of the servers
  throughput  every row at every shape, the servers in turn
  connects    sessions opened and closed
  scale       rows over 1,000, 10,000 and 1,000,000 keys, and creates below parents of 1,000, 50,000 and 1,000,000 children
  tls         gets, sets and sessions of clients that speak TLS
  watches     one change with many watchers, and many changes
  ensemble    three members: throughput with connections to all of them, and memory
  failover    three members: time without a write after kill -9 of the leader
  calm        the slowest of paced writes, beside checkpoints and without
  recipes     locks, elections and queues of gozkd, Curator and kazoo, on each server
  waiters     thousands of waiters of one client: how many a lock, a semaphore and an election serve in three minutes
  load        one row against a running server, for a profiler
  resident    memory: empty, under load, with sessions, with znodes
  compare     everything that the targets need, in short rounds, into .cache/bench; about an hour
  targets     which targets the figures in the directory of -out meet

flags
`

func main() { must.Program("bench", run) }

// settings holds the values of the flags.
type settings struct {
	servers  []kind
	starts   int
	rounds   int
	seconds  time.Duration
	warm     time.Duration
	rows     string
	shapes   []shape
	sessions int
	znodes   int
	kills    int
	ticks    []int // ms
	calm     time.Duration
	rate     int // writes per second
	waiters  int
	addr     string
	tlsKeys  map[string]string // of zoo.cfg, with -tls
	pid      int
	out      *output
}

func run(ctx context.Context, args []string) {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if peer := map[string]func(context.Context, []string){"recipes-peer": recipesPeer, "waiters-peer": waitersPeer}[command]; peer != nil {
		peer(ctx, args) // started by recipes or waiters
		return
	}
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage) // an error of printing to standard error cannot be reported
		flags.PrintDefaults()
	}
	servers := flags.String("servers", "gozkd,zookeeper-3.9", "comma-separated: gozkd, zookeeper-3.8, zookeeper-3.9")
	binary := flags.String("gozkd", "", "the gozkd to measure (default: build cmd/gozkd)")
	shapes := flags.String("shapes", "", "connections x requests in flight on each (default 1x1,100x1,16x16)")
	flags.StringVar(&s.rows, "rows", "", "load, throughput, scale, ensemble, recipes, waiters: only rows whose name has this prefix")
	flags.IntVar(&s.starts, "starts", 20, "start: number of starts of gozkd; of others a fifth of it")
	flags.IntVar(&s.rounds, "rounds", 3, "throughput, scale, tls, ensemble, recipes: measured rounds of each row, shape and server")
	flags.DurationVar(&s.seconds, "time", 5*time.Second, "load, throughput, scale, tls, ensemble, recipes: length of a round")
	flags.DurationVar(&s.warm, "warm", 10*time.Second, "throughput, scale, tls, ensemble, connects, watches: unmeasured load before the first round of a row; recipes: before each round")
	flags.IntVar(&s.sessions, "sessions", 5000, "resident: number of sessions")
	flags.IntVar(&s.znodes, "znodes", 1_000_000, "start, resident, calm: number of znodes, a multiple of 1000; scale: at most this many")
	flags.IntVar(&s.kills, "kills", 20, "failover: how often the leader of each ensemble is killed")
	flags.DurationVar(&s.calm, "calm", 15*time.Second, "calm: how long writes are measured undisturbed, and beside checkpoints")
	flags.IntVar(&s.rate, "rate", 1000, "calm: writes per second, from 1 to 100000")
	flags.IntVar(&s.waiters, "waiters", 10_000, "waiters: how many wait at once")
	ticks := flags.String("ticks", "2000,200", "failover: comma-separated tickTimes in ms")
	flags.StringVar(&s.addr, "addr", "127.0.0.1:2181", "load: the server's address, or a comma-separated list of an ensemble's members")
	flags.IntVar(&s.pid, "pid", 0, "load: the server's process, to report its CPU time")
	withTLS := flags.Bool("tls", false, "load, throughput: clients speak TLS; connects: with certificates on both sides and full handshakes")
	out := flags.String("out", "", "a directory for Markdown, JSON and pictures")
	must.Parsed(flags.Parse(args))
	if command == "compare" {
		must.Do(setCompareDefaults(flags))
	}
	if flags.NArg() > 0 {
		must.Failf("unexpected argument %q", flags.Arg(0))
	}
	if *shapes == "" {
		*shapes = "1x1,100x1,16x16"
	}
	s.shapes, s.ticks = must.Get(parseShapes(*shapes)), must.Get(parseTicks(*ticks))
	if s.rate < 1 || s.rate > 100_000 {
		must.Failf("%d writes per second: want 1 to 100000", s.rate)
	}
	if s.kills < 1 {
		must.Failf("%d kills: want at least one", s.kills)
	}
	run := map[string]func(context.Context, *settings){"waiters": benchWaiters}
	for _, part := range compareParts() {
		run[part.name] = part.run
	}
	switch {
	case *withTLS && command != "load" && command != "throughput" && command != "connects":
		must.Failf("-tls is for load, throughput and connects")
	case command == "load":
		if *withTLS {
			speakTLS()
		}
		benchLoad(&s)
		return
	case command == "bare" || command == "bare-synced": // started by limits
		serveBare(command == "bare-synced")
		return
	case command != "compare" && run[command] == nil:
		flags.Usage()
		must.Failf("no command %q", command)
	}
	s.out = must.Get(newOutput(*out))
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
	must.Do(s.out.begin(command, args))
	must.Do(s.out.end(command, must.Try(func() { run[command](ctx, &s) })))
}

// comparePart is a command that compare runs, and how it changes the settings.
type comparePart struct {
	name   string
	run    func(context.Context, *settings)
	change func(*settings)
	// about estimates the duration of the command, from runs on two processors.
	about func(*settings) time.Duration
}

// compareParts lists the commands whose figures the goals need.
func compareParts() []comparePart {
	asTold := func(*settings) {}
	// rounds estimates the duration of this many rows at all shapes, unmeasured work included.
	rounds := func(s *settings, rows int) time.Duration {
		servers := time.Duration(len(s.servers))
		return time.Duration(rows) * servers * (s.warm + time.Duration(len(s.shapes)*s.rounds)*s.seconds) * 11 / 10
	}
	// filled estimates what depends on the number of znodes; ZooKeeper takes twice as long as
	// gozkd.
	filled := func(s *settings, each time.Duration) time.Duration {
		return each * time.Duration(len(s.servers)*s.znodes) / 1_000_000
	}
	servers := func(s *settings, each time.Duration) time.Duration { return each * time.Duration(len(s.servers)) }
	return []comparePart{
		{"limits", benchLimits, asTold, func(s *settings) time.Duration {
			return 3 * time.Duration(len(s.shapes)*s.rounds) * s.seconds
		}},
		{"start", benchStart, asTold, func(s *settings) time.Duration { return servers(s, 10*time.Second) + filled(s, 50*time.Second) }},
		{"throughput", benchThroughput, asTold, func(s *settings) time.Duration { return rounds(s, len(workloads())) }},
		{"connects", benchConnects, asTold, func(s *settings) time.Duration { return servers(s, s.warm+time.Duration(s.rounds)*s.seconds) }},
		{"tls", benchTLS, asTold, func(s *settings) time.Duration {
			return rounds(s, len(tlsRows)) + servers(s, s.warm+time.Duration(s.rounds)*s.seconds)
		}},
		{"scale", benchScale, func(s *settings) { s.shapes = []shape{{16, 16}} }, func(s *settings) time.Duration {
			return rounds(s, len(scaleKeys)*len(scaleRows)+len(scaleChildren)) + filled(s, 4*25*time.Second)
		}},
		{"watches", benchWatches, asTold, func(s *settings) time.Duration { return servers(s, 3*s.warm+60*time.Second) }},
		{"resident", benchResident, asTold, func(s *settings) time.Duration {
			return servers(s, 25*time.Second+8*s.seconds) + filled(s, 15*time.Second)
		}},
		{"ensemble", benchEnsemble, asTold, func(s *settings) time.Duration { return rounds(s, len(ensembleRows)) }},
		{"failover", benchFailover, asTold, func(s *settings) time.Duration {
			return servers(s, time.Duration(len(s.ticks)*s.kills)*6*time.Second)
		}},
		{"calm", benchCalm, asTold, func(s *settings) time.Duration {
			return servers(s, 2*s.calm+20*time.Second) + filled(s, 30*time.Second)
		}},
		{"recipes", benchRecipes, func(s *settings) { s.rows, s.warm = "handover", min(s.warm, 4*time.Second) }, func(s *settings) time.Duration {
			return servers(s, 3*time.Duration(s.rounds)*(s.warm+s.seconds+time.Second))
		}},
		{"targets", benchTargets, asTold, func(*settings) time.Duration { return 0 }},
	}
}

// compareDefaults are the flags that compare sets unless they are given: short rounds, about
// an hour in all.
var compareDefaults = map[string]string{"time": "2s", "kills": "5", "ticks": "2000", "starts": "10", "out": ".cache/bench"}

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

// benchCompare runs all parts, also after failures. It reports its plan and progress on
// standard error, and at the end what went wrong.
func benchCompare(ctx context.Context, s *settings, args []string) {
	start := time.Now()
	parts := compareParts()
	var left time.Duration
	progress("compare: what will be done, and about how long it takes")
	for i, part := range parts {
		about := part.about(part.settings(s))
		left += about
		progress("%4d %-12s %6s", i+1, part.name, about.Round(time.Second))
	}
	progress("compare: %s in all", left.Round(time.Second))
	var all error
	for i, part := range parts {
		began, settings := time.Now(), part.settings(s)
		progress("compare: %d of %d, %s; %s since the start, about %s left", i+1, len(parts), part.name, began.Sub(start).Round(time.Second), left.Round(time.Second))
		left -= part.about(settings)
		s.out.conditions = settings.conditions(s.out.conditions.Commit)
		err := s.out.begin(part.name, args)
		if err == nil {
			err = s.out.end(part.name, must.Try(func() { part.run(ctx, settings) }))
		}
		if ctx.Err() != nil {
			must.Do(errors.Join(ctx.Err(), err))
			return
		}
		all = errors.Join(all, err)
		progress("compare: %s took %s", part.name, time.Since(began).Round(time.Second))
	}
	progress("compare: %s in all", time.Since(start).Round(time.Second))
	must.Do(all)
}

func (p *comparePart) settings(s *settings) *settings {
	changed := *s
	p.change(&changed)
	return &changed
}
