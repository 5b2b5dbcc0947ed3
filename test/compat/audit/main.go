// Command audit plays script.txt on ZooKeeper and on gozkd, and compares their replies, and their
// audit logs in ZooKeeper's format line by line. Lines must be equal except for the numbers of
// sessions.
//
// Exit status: 1 if replies or logs differ or a server fails, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("audit", run) }

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	show := flags.Bool("v", false, "print the lines of both servers")
	only := flags.String("server", "all", "zookeeper or gozkd: print the lines of this server and end")
	must.Parsed(flags.Parse(args))
	work := must.Get(os.MkdirTemp("", "gozkd-audit-"))
	defer must.Finally(func() error { return os.RemoveAll(work) })
	if *only != "all" {
		name := map[string]string{"zookeeper": server.ZooKeeper39, "gozkd": server.Gozkd}[*only]
		kind := server.KindNamed(ctx, name, *binary, work)
		_, lines := playedAlone(ctx, &kind, work)
		fmt.Println(strings.Join(lines, "\n"))
		return
	}
	var alone [][]string
	var members [][][]string
	var replies, ensembleReplies []*exchange.Transcript
	for _, k := range server.Twins(ctx, *binary, work) {
		t, log := playedAlone(ctx, &k, work)
		alone, replies = append(alone, log), append(replies, t)
		t, logs := playedOnEnsemble(ctx, &k)
		members, ensembleReplies = append(members, logs), append(ensembleReplies, t)
	}
	for _, pair := range [][]*exchange.Transcript{replies, ensembleReplies} {
		if m := exchange.Compare(pair[0], pair[1], exchange.Differences(), make(map[string]int)); m != nil {
			must.Failf("a is ZooKeeper, b is gozkd: %v", m)
		}
	}
	lines := len(alone[0])
	if lines == 0 {
		must.Failf("ZooKeeper's audit log is empty")
	}
	differ, _ := cases.Compare(alone[0], alone[1], *show, nil)
	for i, want := range members[0] {
		fmt.Printf("%s of an ensemble\n", []string{"leader", "follower", "follower"}[i])
		more, _ := cases.Compare(want, members[1][i], *show, nil)
		lines, differ = lines+len(want), differ+more
	}
	if differ > 0 {
		must.Failf("%d lines differ", differ)
	}
	fmt.Printf("%d lines, all equal\n", lines)
}
