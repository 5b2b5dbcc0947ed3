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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (ok bool, err error) {
	only := flag.String("run", "", "only the mutants whose names match this regular expression")
	part := flag.String("subset", "", "i/n: every n-th mutant, from number i modulo n on")
	list := flag.Bool("list", false, "list the mutants and run nothing")
	verbose := flag.Bool("v", false, "print how each check fails")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return false, fmt.Errorf("not in a clone of the repository: %w", err)
	}
	root := strings.TrimSpace(string(top))
	mutants, err := load(filepath.Join(root, "test", "mutants"))
	if err != nil {
		return false, err
	}
	mutants, err = subset(choose(mutants, match), *part)
	if err != nil {
		return false, err
	}
	if *list {
		for _, m := range mutants {
			fmt.Printf("%-40s %s\n%40s %s\n", m.name, m.bug, "", m.check)
		}
		return true, nil
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{root: root, dir: dir, controls: map[string]outcome{}}
	ok = len(mutants) > 0
	var results []outcome
	for _, m := range mutants {
		o, err := b.try(ctx, m)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
		results = append(results, o)
		ok = ok && o.verdict == found
		fmt.Printf("%-8s %6.1fs  %-40s %s\n", o.verdict, o.took.Seconds(), m.name, m.check)
		if *verbose || o.verdict != found {
			fmt.Print(o.excerpt())
		}
	}
	fmt.Printf("%d of %d found\n", count(results, found), len(results))
	return ok, nil
}

func count(results []outcome, v verdict) (n int) {
	for _, o := range results {
		if o.verdict == v {
			n++
		}
	}
	return n
}
