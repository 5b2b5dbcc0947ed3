// Command twins plays scripts on ZooKeeper 3.9 and on gozkd and compares what clients see line by
// line. It installs its requirements; docs/quality/compatibility.md describes the scripts.
//
// Exit status: 1 if a line differs or a server fails, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/audit"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/choose"
	"github.com/gozkd/gozkd/test/compat/kerberos"
	"github.com/gozkd/gozkd/test/compat/modes"
	"github.com/gozkd/gozkd/test/compat/security"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("twins", run) }

// group is scripts that share what open makes, such as files in dir, and end removes.
type group struct {
	name string
	open func(ctx context.Context, dir string, gozkd *server.Kind) (list []cases.Script, end func() error)
}

func (g group) flagName() string { return g.name }

var groups = []group{
	{"audit", audit.Scripts}, {"kerberos", kerberos.Scripts}, {"modes", modes.Scripts}, {"security", security.Scripts},
}

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	names := flags.String("script", "all", "comma-separated: "+choose.Names(groups, group.flagName)+", all")
	part := flags.String("run", "", "only scripts whose name contains this")
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	show := flags.Bool("v", false, "print all lines")
	must.Parsed(flags.Parse(args))
	dir := must.Get(os.MkdirTemp("", "gozkd-twins-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	twins := server.Twins(ctx, *binary, dir)
	var sum cases.Tally
	for _, g := range must.Get(choose.From(groups, group.flagName, *names)) {
		func() {
			list, end := g.open(ctx, dir, &twins[1])
			defer must.Finally(end)
			for _, s := range list {
				if strings.Contains(s.Name, *part) {
					t := s.Compare(ctx, twins, *show)
					sum = cases.Tally{Lines: sum.Lines + t.Lines, Intended: sum.Intended + t.Intended, Differ: sum.Differ + t.Differ}
				}
			}
		}()
	}
	fmt.Printf("%d lines, %d differ as docs/reference/differences.md says, %d others\n", sum.Lines, sum.Intended, sum.Differ)
	if sum.Differ > 0 || sum.Lines == 0 {
		must.Failf("%d of %d lines differ", sum.Differ, sum.Lines)
	}
}
