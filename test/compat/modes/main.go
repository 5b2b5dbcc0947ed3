// Command modes plays scripts of local sessions, of slow readers and of read-only mode on ensembles
// of ZooKeeper and of gozkd, with the bytes of the protocol, with the Java client and with kazoo,
// and compares what the clients see line by line.
//
// Exit status: 1 if the lines differ or a server fails, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("modes", run) }

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("modes", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	show := flags.Bool("v", false, "print all lines")
	must.Parsed(flags.Parse(args))
	work := must.Get(os.MkdirTemp("", "gozkd-modes-"))
	defer must.Finally(func() error { return os.RemoveAll(work) })
	root := install.Root(ctx)
	twins := server.Twins(ctx, *binary, work)
	lines, differ := 0, 0
	for _, upgrades := range []string{"false", "true"} {
		want, got := played(ctx, root, upgrades, &twins[0]), played(ctx, root, upgrades, &twins[1])
		more, _ := cases.Compare(want, got, *show, intended)
		lines, differ = lines+len(want), differ+more
	}
	if differ > 0 {
		must.Failf("%d lines differ", differ)
	}
	fmt.Printf("%d lines, all as intended\n", lines)
}

// intended reports whether a difference is local-multi in docs/reference/differences.md.
func intended(w, g string) bool {
	return strings.Contains(w, "follower: ") && strings.ReplaceAll(w, proto.ErrSessionExpired.String(), proto.ErrEphemeralOnLocalSession.String()) == g
}

// played plays the scripts on a new ensemble, and returns what the clients saw.
func played(ctx context.Context, root, upgrades string, k *server.Kind) []string {
	keys := server.Defaults()
	keys["localSessionsEnabled"], keys["localSessionsUpgradingEnabled"] = "true", upgrades
	keys["readonlymode.enabled"] = "true" // for gozkd; ZooKeeper reads the property
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{
		Members: 3, Keys: keys,
		JVMFlags: []string{"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dreadonlymode.enabled=true"},
	}))
	defer must.Finally(e.Stop)
	p := &player{ctx: ctx, e: e, title: "upgrades " + upgrades}
	err := must.Try(func() {
		p.localSessions()
		if upgrades == "false" {
			p.slowReaders()
		} else {
			p.readOnly([]*script{
				startScript(ctx, "kazoo", install.Kazoo(ctx, root), root+"/test/compat/kazoo/modes.py", strings.Join(e.Addrs(), ",")),
				startScript(ctx, "Java", "java", "-Dlogback.configurationFile="+root+"/test/compat/java/logback.xml", "-cp", install.JavaClient(ctx, root), "Modes", strings.Join(e.Addrs(), ",")),
			})
		}
	})
	if err != nil {
		must.Failf("%s: %w\n%s\n%s", e.Name(), err, strings.Join(p.lines, "\n"), e.Log())
	}
	return p.lines
}
