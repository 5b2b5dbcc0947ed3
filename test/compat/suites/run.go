package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// tries is how often a part with failures runs: tests of others wait for things that take long on a
// busy machine.
const tries = 3

// partTimeout bounds a try of a part.
const partTimeout = 10 * time.Minute

type options struct {
	root, binary, only, logs string
	alone, quick, kits       bool
	jobs                     int
}

// runSuites runs the suites, prints their results, and reports whether every test that passes on
// ZooKeeper passes on gozkd.
func runSuites(ctx context.Context, o options, list []suite) bool {
	dir := must.Get(os.MkdirTemp("", "gozkd-suites-"))
	defer func() { must.Do(os.RemoveAll(dir)) }()
	if o.binary != "" {
		o.binary = must.Get(filepath.Abs(o.binary))
	}
	twins := server.Twins(ctx, o.binary, dir)
	twins[1].WriteScript(ctx, dir)
	gozkd, zooKeeper := target{name: "gozkd", bin: dir}, target{name: "ZooKeeper", bin: filepath.Join(dir, "zookeeper"), own: true}
	if o.kits {
		gozkd.name, gozkd.kit = "the test kit", filepath.Join(dir, "gozkd-testkit")
		install.Output(ctx, o.root, "go", "build", "-trimpath", "-o", gozkd.kit, "./cmd/gozkd-testkit")
	}
	must.Do(os.Mkdir(zooKeeper.bin, 0o755))
	twins[0].WriteScript(ctx, zooKeeper.bin)
	good := true
	for _, s := range list {
		if o.quick && s.slow {
			continue
		}
		r := &runner{options: o, suite: s, installed: s.install(ctx, o.root), leftOut: readLeftOut(s.name), dir: dir}
		parts := r.chosen()
		started := time.Now()
		ours := r.all(ctx, gozkd, parts)
		if len(ours) == 0 && o.only == "" {
			must.Failf("%s: none of its tests ran", s.name)
		}
		took := time.Since(started).Round(time.Second)
		fmt.Printf("%s %s on %s: %s, in %s\n", s.name, r.version, gozkd.name, ours.summary(r.leftOut), took)
		if o.alone {
			good = r.explain("fails on gozkd", ours.failed(r.leftOut), ours) == 0 && good
			continue
		}
		started = time.Now()
		theirs := r.all(ctx, zooKeeper, parts)
		fmt.Printf("%s %s on ZooKeeper: %s, in %s\n", s.name, r.version, theirs.summary(r.leftOut), time.Since(started).Round(time.Second))
		both, onlyOurs := compare(ours, theirs, r.leftOut)
		r.explain("fails on both", both, ours)
		good = r.explain("FAILS ON GOZKD ONLY", onlyOurs, ours) == 0 && good
	}
	return good
}

// compare returns the tests that fail on both servers, and those that fail on ours and do not fail
// on theirs. A test that is missing or skips itself on ours fails, too, if it passes on theirs.
func compare(ours, theirs results, l leftOut) (both, onlyOurs []string) {
	tests := maps.Clone(ours)
	for test := range theirs {
		if _, ok := ours[test]; !ok {
			tests[test] = outcome{why: "did not run"}
		}
	}
	for _, test := range slices.Sorted(maps.Keys(tests)) {
		a, b := tests[test], theirs[test]
		switch {
		case l.has(test) || a.passed:
		case b.passed || !a.skipped && b.skipped:
			onlyOurs = append(onlyOurs, test)
		case !a.skipped:
			both = append(both, test)
		}
	}
	return both, onlyOurs
}

// failed returns the tests that failed and are not left out.
func (r results) failed(l leftOut) []string {
	var list []string
	for _, test := range slices.Sorted(maps.Keys(r)) {
		if o := r[test]; !o.passed && !o.skipped && !l.has(test) {
			list = append(list, test)
		}
	}
	return list
}

func (r results) summary(l leftOut) string {
	var passed, skipped, out int
	for test, o := range r {
		switch {
		case l.has(test):
			out++
		case o.passed:
			passed++
		case o.skipped:
			skipped++
		}
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped themselves, %d left out", passed, len(r.failed(l)), skipped, out)
}

// runner runs the parts of a suite.
type runner struct {
	options
	suite
	installed
	leftOut leftOut
	dir     string

	mu sync.Mutex // orders what is printed
}

// chosen returns the parts to run.
func (r *runner) chosen() []string {
	parts := r.parts
	if r.options.quick {
		parts = r.installed.quick
	}
	return slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
		return r.leftOut.has(part) || !strings.Contains(part, r.only)
	})
}

// all runs the parts, several at once.
func (r *runner) all(ctx context.Context, t target, parts []string) results {
	all := make(results)
	var mu sync.Mutex
	must.Each(r.jobs, len(parts), func(i int) {
		must.Do(ctx.Err())
		one := r.part(ctx, t, parts[i])
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all, one)
	})
	return all
}

// part runs a part until a try without failures.
func (r *runner) part(ctx context.Context, t target, part string) results {
	all := make(results)
	for try := 1; ; try++ {
		started := time.Now()
		one, log := r.try(ctx, t, part, try)
		all.merge(one)
		failed := all.failed(r.leftOut)
		r.mu.Lock()
		fmt.Printf("  %s on %s: %d of %d, %s\n", part, t.name, len(all)-len(failed), len(all), time.Since(started).Round(time.Second/10))
		r.mu.Unlock()
		if len(failed) > 0 && r.logs != "" {
			must.Do(os.MkdirAll(r.logs, 0o755))
			must.Do(os.WriteFile(filepath.Join(r.logs, fmt.Sprintf("%s-%s-%d.txt", part, t.name, try)), log, 0o644))
		}
		stands := func(test string) bool { return r.strict && !t.own && !slices.Contains(r.racy, test) }
		if len(failed) == 0 || try == tries || slices.ContainsFunc(failed, stands) || ctx.Err() != nil {
			return all
		}
	}
}

// try runs a part. A run without a report is a failure of the part.
func (r *runner) try(ctx context.Context, t target, part string, try int) (results, []byte) {
	dir := filepath.Join(r.dir, fmt.Sprintf("%s-%s-%d", t.name, part, try))
	must.Do(os.MkdirAll(dir, 0o755))
	defer func() { must.Do(os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	cmd := r.command(ctx, t, part, dir)
	log := must.Get(os.Create(filepath.Join(dir, "output.txt")))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = dir
	runErr := server.RunGroup(cmd)
	must.Do(log.Close())
	name := r.test
	if name == nil {
		name = func(class, name string) string { return class + "#" + name }
	}
	text := must.Get(os.ReadFile(log.Name()))
	var found results
	var err error
	if r.read != nil {
		found = r.read(text)
	} else {
		err = must.Try(func() { found = readReports(dir, name) })
	}
	if err = errors.Join(err, ctx.Err()); err != nil || len(found) == 0 && runErr != nil {
		why := fmt.Sprintf("did not finish: %v", errors.Join(err, runErr))
		return results{part + "#run": {why: why}}, text
	}
	return found, text
}

// explain prints tests with the reason of their failure, and returns how many they are.
func (r *runner) explain(title string, tests []string, of results) int {
	for _, test := range tests {
		fmt.Printf("%s: %s: %s: %s\n", r.name, title, test, of[test].why)
	}
	return len(tests)
}
