// Command compat runs other people's ZooKeeper clients, unchanged, through real work on Apache
// ZooKeeper and on gozkd, and prints a table of the results. It installs its requirements;
// docs/quality/compatibility.md describes it.
//
// Exit status: 1 if a case failed or a client or server could not be run, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/choose"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("compat", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	serverNames := flags.String("server", "all", "comma-separated: zookeeper-3.8, zookeeper-3.9, gozkd, all")
	clientNames := flags.String("client", "all", "comma-separated: "+choose.Names(clients(), client.flagName)+", all")
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	verbose := flags.Bool("v", false, "print every case")
	jobs := flags.Int("jobs", 3, "how many clients to run at once; most wait most of the time")
	must.Parsed(flags.Parse(args))
	if *jobs < 1 {
		must.Failf("-jobs %d: run at least one client at a time", *jobs)
	}
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-compat-bin-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	chosenServers := server.Kinds(ctx, *serverNames, *binary, dir)
	chosenClients := must.Get(choose.From(clients(), client.flagName, *clientNames))
	rows := runAll(ctx, root, chosenServers, chosenClients, *jobs, *verbose)
	if len(rows) == 0 {
		must.Failf("none of these clients runs on any of these servers")
	}
	fmt.Print("\n", formatTable(rows))
	var failed []string
	for _, r := range rows {
		if !r.ok() {
			failed = append(failed, formatRow(r, false))
		}
	}
	if len(failed) > 0 {
		must.Failf("%d of %d rows did not pass:\n%s", len(failed), len(rows), strings.Join(failed, ""))
	}
}
