//go:build linux

// Command jepsen runs test/jepsen-lite: an ensemble of processes on this machine, clients, and
// faults. It prints a report; the exit status is 0 if nothing was wrong, 1 if there was an anomaly,
// 2 if the test could not be held.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/must"
	jepsenlite "github.com/gozkd/gozkd/test/jepsen-lite"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx)
	cancel()
	os.Exit(status)
}

func run(ctx context.Context) (status int) {
	var o jepsenlite.Options
	product := flag.String("server", "gozkd", "what to test: gozkd or zookeeper")
	gozkd := flag.String("gozkd", "", "the gozkd to test; empty: built from the tree")
	previous := flag.String("previous", "", "another gozkd, whose version some members have: see the fault version")
	flag.IntVar(&o.Members, "members", 3, "how many")
	flag.DurationVar(&o.Time, "time", 2*time.Minute, "no further round begins after this time")
	flag.DurationVar(&o.Round, "round", 30*time.Second, "how long faults happen in a round")
	flag.Uint64Var(&o.Seed, "seed", 0, "of the choice of faults and operations; 0: any")
	faults := flag.String("faults", "", "kinds of faults, separated by commas; empty: all")
	flag.DurationVar(&o.Pace, "pace", 20*time.Millisecond, "mean time between two operations of a client")
	flag.DurationVar(&o.Tick, "tick", 500*time.Millisecond, "tickTime")
	flag.DurationVar(&o.RoundTrip, "round-trip", 0, "between members, besides faults")
	flag.Float64Var(&o.LossPercent, "loss", 0, "percentage of the packets between members that are lost, and sent again after a round trip, or three, or seven, ...")
	flag.IntVar(&o.Kills, "bursts", 0, "with -members 1: rounds go on until the fault kill-burst has killed the server this many times, too")
	flag.StringVar(&o.Dir, "dir", "", "where to keep data and logs; empty: a temporary folder, removed unless something was wrong")
	flag.Parse()
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1 << 32)
	}
	if *faults != "" {
		o.Faults = strings.Split(*faults, ",")
	}
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: "jepsen", Output: os.Stderr})
	err := must.Try(func() {
		made := o.Dir == ""
		if made {
			o.Dir = must.Get(os.MkdirTemp("", "jepsen-"))
		}
		must.Do(os.MkdirAll(o.Dir, 0o755))
		o.Product = jepsenlite.Find(ctx, *product, *gozkd, o.Dir)
		if *previous != "" {
			o.Product.Previous = []string{*previous, "serve"}
		}
		fmt.Fprintf(os.Stderr, "seed %d, folder %s\n", o.Seed, o.Dir)
		report := must.Get(jepsenlite.Run(ctx, o))
		report.Print(os.Stdout)
		if report.Failed() {
			status = 1
		} else if made {
			must.Do(os.RemoveAll(o.Dir))
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "jepsen:", err)
		return 2
	}
	return status
}
