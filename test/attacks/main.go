// Command attacks plays a stranger that wants to hurt a ZooKeeper-compatible server, and measures
// what the server's other clients notice.
//
//	go run ./test/attacks                           gozkd of this tree next to ZooKeeper 3.9
//	go run ./test/attacks -server gozkd             only gozkd; exit status 1 if a target is missed
//	go run ./test/attacks -attack reads-behind-write
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
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("attacks", run) }

// settings are the flags.
type settings struct {
	servers  string // names of kinds, separated by commas; the first one is judged
	gozkd    string // the binary to attack; empty: built from the tree
	attacks  []*attack
	duration time.Duration
	race     bool
	page     string // the page to write the table to
}

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	if len(args) > 0 {
		switch args[0] { // the processes that the program starts
		case probeCommand:
			runProbe(args[1:], os.Stdin, os.Stdout)
			return
		case attackCommand:
			runAttack(ctx, args[1], os.Stdin, os.Stdout)
			return
		}
	}
	var s settings
	flags.StringVar(&s.servers, "server", "gozkd,zookeeper", "what to attack: gozkd, zookeeper, or both; the first one is judged")
	flags.StringVar(&s.gozkd, "gozkd", "", "the gozkd to attack; empty: built from the tree")
	names := flags.String("attack", "all", "names of attacks, separated by commas")
	flags.DurationVar(&s.duration, "time", 6*time.Second, "how long each attack lasts")
	flags.BoolVar(&s.race, "race", false, "build gozkd with the race detector: a report is a failure, and slowness is none")
	flags.StringVar(&s.page, "write", "", "write the table into this page, between its marks")
	must.Parsed(flags.Parse(args))
	s.attacks = must.Get(attacksNamed(*names))
	attackAll(ctx, &s)
}

// attackAll runs every attack against every server and prints the table.
func attackAll(ctx context.Context, s *settings) {
	dir := must.Get(os.MkdirTemp("", "gozkd-attacks-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	var rows []*row
	var missed []string
	var flags []string
	if s.race {
		flags = []string{"-race"}
	}
	for i, k := range server.Kinds(ctx, s.servers, s.gozkd, dir, flags...) {
		for _, a := range s.attacks {
			if a.onlyGozkd() && k.Name != server.Gozkd {
				continue
			}
			var r *row
			must.Doing(a.name+" against "+k.Name, func() { r = measure(ctx, s, k, a) })
			rows = append(rows, r)
			fmt.Println(r)
			if i == 0 {
				missed = append(missed, r.missed(s)...)
			}
		}
	}
	text := table(rows)
	fmt.Print("\n", text)
	if s.page != "" {
		must.Do(writePage(s.page, text))
	}
	if len(missed) > 0 {
		must.Failf("a target was missed:\n  %s", strings.Join(missed, "\n  "))
	}
}
