// Command mutants tests the tests: it plants a bug in a copy of the tree, runs the check that must
// find it, and reports whether the check failed.
//
// Each bug is a file NNN-name.patch in this directory: a header, then a diff as git writes it.
//
//	bug: what is wrong, and what a user would see
//	check: go test ./wal -run TestLog
//	within: 20s
//	diff --git a/wal/log.go b/wal/log.go
//	...
//
// check is the cheapest command that should find the bug. within bounds the processor time of that
// command, building included, so that it does not depend on how busy the machine is. To add a bug,
// edit the code, write `git diff -U2` below a header, undo the edit, and run with -run. A patch
// whose context has changed is adapted by hand; the line numbers and counts need not be right.
//
// The exit status is 1 if a bug was missed or was found too late, if a patch does not apply or does
// not compile, or if a check fails without the bug.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func main() { must.Program("mutants", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	only := flags.String("run", "", "only the mutants whose names match this regular expression")
	part := flags.String("subset", "", "i/n: every n-th mutant, from number i modulo n on")
	list := flags.Bool("list", false, "list the mutants and run nothing")
	runs := flags.Int("runs", 1, "how often each check must find its mutant, with another seed of rapid each time")
	verbose := flags.Bool("v", false, "print how each check fails")
	must.Parsed(flags.Parse(args))
	match := must.Get(regexp.Compile(*only))
	root := install.Root(ctx)
	other := func(m mutant) bool { return !match.MatchString(m.name) }
	mutants := subset(slices.DeleteFunc(load(filepath.Join(root, "test", "mutants")), other), *part)
	if *list {
		for _, m := range mutants {
			fmt.Printf("%-40s %s\n%40s %s\n", m.name, m.bug, "", m.check)
		}
		return
	}
	dir := must.Get(os.MkdirTemp("", "mutants-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	b := &bench{root: root, dir: dir, controls: map[string]outcome{}}
	finds, all := 0, *runs*len(mutants)
	for i := range all {
		m, o := mutants[i / *runs], outcome{}
		must.Doing(m.name, func() { o = b.try(ctx, m, 1+i%*runs) })
		fmt.Printf("%-8s %6.1fs  %-40s %s\n", o.verdict, o.took.Seconds(), m.name, m.check)
		if o.verdict == found {
			finds++
		}
		if *verbose || o.verdict != found {
			fmt.Print(o.excerpt())
		}
	}
	fmt.Printf("%d of %d found\n", finds, all)
	if finds == 0 || finds < all {
		must.Failf("%d of %d mutants were not found", all-finds, all)
	}
}
