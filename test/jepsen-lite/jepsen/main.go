//go:build linux

// Command jepsen runs test/jepsen-lite: an ensemble of processes on this machine, clients, and
// faults. It prints a report; the exit status is 0 if nothing was wrong, 1 if there was an anomaly,
// 2 if the test could not be held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	jepsenlite "github.com/gozkd/gozkd/test/jepsen-lite"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx)
	cancel()
	os.Exit(status)
}

func run(ctx context.Context) int {
	product := flag.String("server", "gozkd", "what to test: gozkd or zookeeper")
	gozkd := flag.String("gozkd", "", "the gozkd to test; empty: built from the tree")
	previous := flag.String("previous", "", "another gozkd, whose version some members have: see the fault version")
	members := flag.Int("members", 3, "how many")
	length := flag.Duration("time", 2*time.Minute, "no further round begins after this time")
	round := flag.Duration("round", 30*time.Second, "how long faults happen in a round")
	seed := flag.Uint64("seed", 0, "of the choice of faults and operations; 0: any")
	faults := flag.String("faults", "", "kinds of faults, separated by commas; empty: all")
	pace := flag.Duration("pace", 20*time.Millisecond, "mean time between two operations of a client")
	tick := flag.Duration("tick", 500*time.Millisecond, "tickTime")
	bursts := flag.Int("bursts", 0, "with -members 1: rounds go on until the fault kill-burst has killed the server this many times, too")
	kills := flag.Int("kills", 0, "instead: kill the leader so many times under pipelined load, and count what clients of the others notice")
	outage := flag.String("outage", jepsenlite.OutageKill, "with -kills: what happens to the leader: kill, pause, partition or disk-hang (needs root)")
	hold := flag.Duration("hold", 15*time.Second, "with -kills: how long an outage lasts, except a kill")
	tlsChange := flag.String("tls-change", "", "instead: the members change from plain connections to TLS and back, by reload or by restart, under load")
	dir := flag.String("dir", "", "where to keep data and logs; empty: a temporary folder, removed unless something was wrong")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1 << 32)
	}
	err := func() error {
		made := *dir == ""
		if made {
			d, err := os.MkdirTemp("", "jepsen-")
			if err != nil {
				return err
			}
			*dir = d
		} else if err := os.MkdirAll(*dir, 0o755); err != nil {
			return err
		}
		p, err := jepsenlite.Find(ctx, *product, *gozkd, *dir)
		if err != nil {
			return err
		}
		if *previous != "" {
			p.Previous = []string{*previous, "serve"}
		}
		o := jepsenlite.Options{
			Product: p, Members: *members, Dir: *dir, Time: *length, Round: *round, Seed: *seed, Pace: *pace, Tick: *tick,
			Kills: *bursts, Outage: *outage, Hold: *hold,
			Logger: hclog.New(&hclog.LoggerOptions{Name: "jepsen", Output: os.Stderr}),
		}
		if *faults != "" {
			o.Faults = strings.Split(*faults, ",")
		}
		fmt.Fprintf(os.Stderr, "seed %d, folder %s\n", *seed, *dir)
		failed, err := test(ctx, o, *kills, *tlsChange)
		if err != nil {
			return err
		}
		if failed {
			return errAnomalies
		}
		if made {
			return os.RemoveAll(*dir)
		}
		return nil
	}()
	switch {
	case errors.Is(err, errAnomalies):
		return 1
	case err != nil:
		fmt.Fprintln(os.Stderr, "jepsen:", err)
		return 2
	}
	return 0
}

// test runs the selected test and prints its report.
func test(ctx context.Context, o jepsenlite.Options, kills int, tlsChange string) (failed bool, err error) {
	if kills > 0 {
		report, err := jepsenlite.RunKills(ctx, o, kills)
		if err != nil {
			return false, err
		}
		report.Print(os.Stdout)
		return report.Failed(), nil
	}
	var report *jepsenlite.Report
	if tlsChange != "" {
		report, err = jepsenlite.RunTLSChange(ctx, o, tlsChange)
	} else {
		report, err = jepsenlite.Run(ctx, o)
	}
	if err != nil {
		return false, err
	}
	report.Print(os.Stdout)
	return len(report.Anomalies) > 0, nil
}

var errAnomalies = errors.New("there were anomalies")
