// Command attacks plays a stranger that wants to hurt a ZooKeeper-compatible server, and measures
// what the server's other clients notice.
//
//	go run ./test/attacks                           gozkd of this tree next to ZooKeeper 3.9
//	go run ./test/attacks -server gozkd             only gozkd; exit status 1 if a target is missed
//	go run ./test/attacks -attack reads-behind-write
//	go run ./test/attacks -addr 127.0.0.1:2181      a server that runs already
//	go run ./test/attacks -server gozkd -race       with the race detector, which must find nothing
//
// Each attack gets a server of its own, an attacker in a process of its own, and a probe in another
// process: an ordinary client that sets and gets a znode every 20 ms. While the attack runs, the
// probe measures its requests and the program samples the server's memory. At the end, while the
// attack still runs, the server gets SIGTERM. Then it is started again on its data, and everything
// that was there before must be there.
//
// docs/quality/attacks.md describes the attacks and the targets, and holds the results.
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

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx)
	cancel()
	os.Exit(status)
}

// settings are the flags.
type settings struct {
	servers  []string // product names; the first one is judged
	gozkd    string   // the binary to attack; empty: built from the tree
	addr     string   // a running server to attack instead
	attacks  []*attack
	duration time.Duration
	race     bool
	page     string // the page to write the table to
	tick     string // tickTime
}

// errMissed means that a target was missed.
var errMissed = errors.New("a target was missed")

func run(ctx context.Context) int {
	if len(os.Args) > 1 {
		switch os.Args[1] { // the processes that the program starts
		case probeCommand:
			return report(runProbe(os.Args[2:], os.Stdin, os.Stdout))
		case attackCommand:
			return report(runAttack(ctx, os.Args[2], os.Stdin, os.Stdout))
		}
	}
	var s settings
	servers := flag.String("server", "gozkd,zookeeper", "what to attack: gozkd, zookeeper, or both; the first one is judged")
	flag.StringVar(&s.gozkd, "gozkd", "", "the gozkd to attack; empty: built from the tree")
	flag.StringVar(&s.addr, "addr", "", "attack a running server at this host:port instead; memory, SIGTERM and restart are left out")
	names := flag.String("attack", "", "names of attacks, separated by commas; empty: all")
	flag.DurationVar(&s.duration, "time", 6*time.Second, "how long each attack lasts")
	flag.BoolVar(&s.race, "race", false, "build gozkd with the race detector: a report is a failure, and slowness is none")
	flag.StringVar(&s.page, "write", "", "write the table into this page, between its marks")
	flag.StringVar(&s.tick, "tick", "2000", "tickTime of the servers that are started, in ms")
	list := flag.Bool("list", false, "list the attacks")
	flag.Parse()
	s.servers = strings.Split(*servers, ",")
	if *list {
		for _, a := range allAttacks() {
			fmt.Printf("%-20s %s\n", a.name, a.what)
		}
		return 0
	}
	var err error
	if s.attacks, err = attacksNamed(*names); err == nil {
		err = attackAll(ctx, &s)
	}
	return report(err)
}

// report prints an error and returns the exit status.
func report(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errMissed):
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "attacks:", err)
	return 2
}

// attackAll runs every attack against every server and prints the table.
func attackAll(ctx context.Context, s *settings) (err error) {
	dir, err := os.MkdirTemp("", "gozkd-attacks-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	products, err := s.products(ctx, dir)
	if err != nil {
		return err
	}
	var rows []*row
	var missed []string
	for i, p := range products {
		for _, a := range s.attacks {
			if a.needsOwn() && s.addr != "" || a.web && p.name != gozkd {
				continue
			}
			r, err := measure(ctx, s, p, a, dir)
			if err != nil {
				return fmt.Errorf("%s against %s: %w", a.name, p.name, err)
			}
			rows = append(rows, r)
			fmt.Println(r)
			if i == 0 {
				missed = append(missed, r.missed(s)...)
			}
		}
	}
	fmt.Println()
	text := table(rows)
	fmt.Print(text)
	if s.page != "" {
		if err := writePage(s.page, text); err != nil {
			return err
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w:\n  %s", errMissed, strings.Join(missed, "\n  "))
	}
	return nil
}
