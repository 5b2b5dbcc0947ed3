//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: bench [command] [flags]

commands
  start       from the start of the process to the first answered create
  limits      what the disk, the loopback and a bare server in Go can do, without any of the servers
  throughput  every row at every shape, the servers in turn
  connects    sessions opened and closed
  watches     changes that many watch, and many changes
  ensemble    three members: throughput with connections to all of them, and memory
  failover    three members: how long no write succeeds after kill -9 of the leader
  growth      how costs grow with znodes, sessions, watches, children, members, payloads; about 20 minutes
  calm        how slow the slowest of paced writes get while checkpoints run, a member catches up, all sessions reconnect
  recipes     locks and queues of ours, of Curator and of kazoo, on each server
  load        one row against a server that runs already, for a profiler
  resident    resident memory: empty, under load, with sessions, with znodes; at once
  compare     all that the targets need, in short rounds, into .cache/bench; about 40 minutes
  targets     what is to be reached, and what the figures in the folder of -out say
Without a command: limits, start, throughput, connects, watches and resident, one after the other.

flags
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2) // the flag package has said why
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

// settings are what the flags say.
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
	lag      int // writes
	sizes    []int
	addr     string
	pid      int
	out      *output
}

func run(ctx context.Context, args []string) error {
	command := "all"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if command == "recipes-peer" { // what recipes starts
		return recipesPeer(ctx, args)
	}
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage) // when standard error fails there is nowhere left to say so
		flags.PrintDefaults()
	}
	servers := flags.String("servers", "gozkd,zookeeper-3.9", "comma-separated: gozkd, zookeeper-3.8, zookeeper-3.9")
	binary := flags.String("gozkd", "", "the gozkd to measure (default: build cmd/gozkd)")
	shapes := flags.String("shapes", "", "connections x requests in flight on each (default 1x1,100x1,16x16)")
	flags.StringVar(&s.rows, "rows", "", "load, throughput, ensemble, calm, growth, recipes: only rows whose name begins so")
	flags.IntVar(&s.starts, "starts", 20, "start: how often gozkd is started; others a fifth of that")
	flags.IntVar(&s.rounds, "rounds", 3, "throughput, ensemble, recipes: measured rounds of each row, shape and server")
	flags.DurationVar(&s.seconds, "time", 5*time.Second, "load, throughput, ensemble, recipes: length of a round")
	flags.DurationVar(&s.warm, "warm", 10*time.Second, "throughput, ensemble, connects, watches: unmeasured load before the first round of a row; recipes: before each round")
	flags.IntVar(&s.sessions, "sessions", 5000, "sessions, calm: how many")
	flags.IntVar(&s.znodes, "znodes", 1_000_000, "znodes, calm: how many, in thousands")
	flags.IntVar(&s.kills, "kills", 20, "failover: how often the leader of each ensemble is killed")
	sizes := flags.String("sizes", "", "growth: comma-separated sizes in place of each row's own, as 1000,1e7")
	flags.DurationVar(&s.calm, "calm", 15*time.Second, "calm: how long writes are measured while nothing else goes on, and while checkpoints run")
	flags.IntVar(&s.rate, "rate", 1000, "calm: writes per second, from 1 to 100000")
	flags.IntVar(&s.lag, "lag", 200_000, "calm: writes that the lagging member has missed")
	ticks := flags.String("ticks", "2000,200", "failover: comma-separated tickTimes in ms")
	flags.StringVar(&s.addr, "addr", "127.0.0.1:2181", "load: where the server listens, or with commas between them the members of an ensemble")
	flags.IntVar(&s.pid, "pid", 0, "load: the server's process, to report its CPU time")
	out := flags.String("out", "", "a folder to write the tables to as Markdown, and throughput and ensemble as JSON and pictures too")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errors.Join(errUsage, err)
	}
	if command == "compare" {
		if err := setCompareDefaults(flags); err != nil {
			return err
		}
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	if *shapes == "" {
		*shapes = "1x1,100x1,16x16"
	}
	if s.shapes, err = parseShapes(*shapes); err != nil {
		return err
	}
	if s.sizes, err = parseSizes(*sizes); err != nil {
		return err
	}
	if s.ticks, err = parseTicks(*ticks); err != nil {
		return err
	}
	if s.rate < 1 || s.rate > 100_000 {
		return fmt.Errorf("%d writes per second: want 1 to 100000", s.rate)
	}
	if s.kills < 1 {
		return fmt.Errorf("%d kills: want at least one", s.kills)
	}
	commands := map[string]func(context.Context, *settings) error{
		"limits":     benchLimits,
		"start":      benchStart,
		"throughput": benchThroughput,
		"calm":       benchCalm,
		"connects":   benchConnects,
		"watches":    benchWatches,
		"ensemble":   benchEnsemble,
		"failover":   benchFailover,
		"growth":     benchGrowth,
		"recipes":    benchRecipes,
		"resident":   benchResident,
		"targets":    benchTargets,
	}
	switch {
	case command == "load":
		return benchLoad(&s)
	case command == "echo": // the other end of a loopback round trip; latency and limits start it
		return serveEcho()
	case command == "bare" || command == "bare-synced": // what limits starts
		return serveBare(command == "bare-synced")
	case command != "all" && command != "compare" && commands[command] == nil:
		flags.Usage()
		return fmt.Errorf("no command %q", command)
	}
	if s.out, err = newOutput(*out); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gozkd-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()         // a temporary directory that stays is a nuisance, not an error
	if command != "limits" && command != "targets" { // these have to do with none of them
		if s.servers, err = kinds(ctx, *servers, *binary, dir); err != nil {
			return err
		}
	}
	if s.out.machine, err = machine(dir); err != nil {
		return err
	}
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	s.out.conditions = s.conditions(commit)
	if command == "compare" {
		return benchCompare(ctx, &s, args)
	}
	order := []string{command}
	if command == "all" {
		order = []string{"limits", "start", "throughput", "connects", "watches", "resident"}
	}
	for _, name := range order {
		if err := s.out.begin(name, args); err != nil {
			return err
		}
		if err := s.out.end(name, commands[name](ctx, &s)); err != nil {
			return err
		}
	}
	return nil
}
