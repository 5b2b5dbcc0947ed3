// Command suites runs the test suites of other people's ZooKeeper clients as they are published, on
// gozkd and on the ZooKeeper of test/compat/java/pom.xml, and compares the sets of failures.
// docs/quality/compatibility.md describes it.
//
// Exit status: 1 if a test that passes on ZooKeeper fails on gozkd, or a suite cannot be run; 2 for
// wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/choose"
	"github.com/gozkd/gozkd/test/compat/install"
)

func main() { must.Program("suites", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	name := func(s suite) string { return s.name }
	o := options{root: install.Root(ctx)}
	wanted := flags.String("suite", "all", "comma-separated: "+choose.Names(suites(), name)+", all")
	flags.StringVar(&o.only, "only", "", "run the parts of the suites whose names contain this text")
	flags.StringVar(&o.binary, "gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	flags.BoolVar(&o.alone, "alone", false, "do not run on ZooKeeper what fails on gozkd, nor anything else")
	flags.BoolVar(&o.quick, "quick", false, "run the parts that are quick, one test of each kind")
	flags.BoolVar(&o.kits, "kits", false, "kazoo and Curator: use our test kits in place of their harnesses")
	flags.IntVar(&o.jobs, "jobs", 4, "how many parts to run at once; most tests wait most of the time")
	flags.StringVar(&o.logs, "logs", "", "keep the output of parts with failures in this folder")
	must.Parsed(flags.Parse(args))
	chosen := must.Get(choose.From(suites(), name, *wanted))
	if o.kits {
		chosen = slices.DeleteFunc(chosen, func(s suite) bool { return s.name != "kazoo" && s.name != "curator" })
	}
	if !runSuites(ctx, o, chosen) {
		must.Failf("tests that pass on ZooKeeper fail on gozkd")
	}
	fmt.Println("no test that passes on ZooKeeper fails on gozkd")
}
