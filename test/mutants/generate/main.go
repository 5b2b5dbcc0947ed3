// Command generate tests the tests of a package with generated mutants: it negates each condition,
// drops each call, assignment and early return, changes each comparison and constant by one, and so
// on. See docs/quality/how-we-test.md.
//
//	go run ./test/mutants/generate -pkg consensus/internal/core
//
// All mutants of the package are compiled into each test program at once, behind a switch that is
// read when the program starts. Each mutant then meets the tests that reach it, the cheapest first,
// until one of them fails.
//
// A mutant that changes nothing that matters is listed with its reason in equivalent.txt:
//
//	consensus/internal/core
//	Membership.tick | m.changeTicks > 0 | > becomes >=
//		reason
//
// The exit status is 1 if a mutant survives, or if a line of equivalent.txt has no mutant.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/mutants/internal/typecheck"
)

func main() { must.Program("mutants/generate", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	name := flags.String("pkg", "consensus/internal/core", "the package to mutate, from the root of the repository")
	only := flags.String("run", "", "only the mutants that match this regular expression")
	list := flags.Bool("list", false, "list the mutants and run nothing")
	verbose := flags.Bool("v", false, "also print the mutants that are found")
	most := flags.Int("detectors", 9, "only this many of the package's detectors, the cheapest ones")
	workers := flags.Int("j", 2, "mutants at a time")
	must.Parsed(flags.Parse(args))
	*name = path.Clean(*name)
	match := must.Get(regexp.Compile(*only))
	root := install.Root(ctx)
	equivalent := readEquivalent(string(must.Get(os.ReadFile(filepath.Join(root, "test", "mutants", "generate", equivalentFile)))), *name)
	tree := typecheck.List(root, append(inSwitch, "./"+*name)...)
	r := rewrite(load(tree, *name))
	must.Get2(tree.Check(*name, r.rewritten(), nil))
	var chosen []mutant
	for _, m := range r.mutants {
		_, same := equivalent[m.key]
		delete(equivalent, m.key)
		if !same && match.MatchString(m.key) {
			chosen = append(chosen, m)
		}
		if *list {
			fmt.Printf("%-12s%s\n", map[bool]string{true: "equivalent"}[same], m.key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(equivalent)) {
		fmt.Printf("%-12s%s\n", "STALE", key)
	}
	if *list {
		return
	}
	dir := must.Get(os.MkdirTemp("", "mutants-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	b := newBench(ctx, root, dir, *name, r, *most)
	b.control(ctx)
	found := b.all(ctx, chosen, *workers, *verbose)
	fmt.Printf("%s: %d mutants, %d found, %d survive\n", *name, len(chosen), found, len(chosen)-found)
	if found < len(chosen) || len(equivalent) > 0 {
		must.Failf("%d mutants survive, and %d lines of equivalent.txt have no mutant", len(chosen)-found, len(equivalent))
	}
}

// equivalentFile lists mutants that change nothing that matters, with the reasons.
const equivalentFile = "equivalent.txt"

// readEquivalent returns the reasons for the equivalent mutants of a package, by key.
func readEquivalent(text, pkg string) map[string]string {
	reasons, section, key := make(map[string]string), "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch reason, indented := strings.CutPrefix(line, "\t"); {
		case line == "" || line[0] == '#':
		case indented && (key == "" || section != pkg):
		case indented:
			reasons[key] += reason
		case !strings.Contains(line, " | "):
			section, key = line, ""
		case section == pkg:
			key = line
			if _, twice := reasons[key]; twice {
				must.Failf("%s: %s is listed twice", equivalentFile, key)
			}
			reasons[key] = ""
		}
	}
	return reasons
}

// bench runs test programs in which the mutants of a package are compiled in.
type bench struct {
	root, dir string
	mutants   int
	detectors []detector
	tests     [][]test // by detector, the cheapest first
}

// detector is a test program, or some of its tests.
type detector struct {
	pkg, args string
	program   string
}

// test is a test of a detector, or several that run together.
type test struct {
	*detector
	names     string        // separated by |
	took, all time.Duration // without a mutant: processor time, and time
	reached   []byte        // by mutant: not 0 if the test reaches it
}

// detectorsOf are the detectors of each package, the cheapest first.
var detectorsOf = map[string][]detector{
	"consensus/internal/core": {
		{pkg: "consensus/internal/core"}, {pkg: "consensus/internal/turn"},
		{pkg: "consensus", args: "-test.run=^TestSim -test.short"}, {pkg: "consensus", args: "-test.skip=^TestSim"},
		{pkg: "consensus", args: "-test.run=^TestSim$ -rapid.checks=100"},
	},
	"consensus/internal/turn": {
		{pkg: "consensus/internal/turn"}, {pkg: "consensus", args: "-test.run=^TestSim -test.short"}, {pkg: "consensus", args: "-test.skip=^TestSim"},
		{pkg: "consensus", args: "-test.run=^TestSim$ -rapid.checks=100"},
	},
	"server/internal/liveness": {{pkg: "server/internal/liveness"}, {pkg: "server", args: "-test.run=Session|Expir|Local"}},
	"server":                   {{pkg: "server", args: "-test.run=Throttle|Stale|LongFrames|Refus|Pause|Budget|SASL|Queue|^TestSpread$"}},
	"session":                  {{pkg: "session"}, {pkg: "server/internal/liveness"}},
	"wal":                      {{pkg: "wal"}, {pkg: "consensus", args: "-test.run=^TestSim -test.short"}},
	"datatree":                 {{pkg: "datatree"}, {pkg: "server"}},
	"recipes/internal/contend": {{pkg: "recipes/internal/contend"}, {pkg: "recipes/lock"}, {pkg: "recipes/election"}},
}

// newBench compiles the test programs into dir.
func newBench(ctx context.Context, root, dir, pkg string, r *rewriter, most int) *bench {
	b := &bench{root: root, dir: dir, mutants: len(r.mutants), detectors: slices.Clone(detectorsOf[pkg])}
	if b.detectors == nil {
		b.detectors = []detector{{pkg: pkg}}
	}
	b.detectors = b.detectors[:min(most, len(b.detectors))]
	overlay := map[string]map[string]string{"Replace": {}}
	for path, text := range r.rewritten() {
		to := filepath.Join(b.dir, filepath.Base(path))
		overlay["Replace"][path] = to
		must.Do(os.WriteFile(to, text, 0o644))
	}
	file := filepath.Join(b.dir, "overlay.json")
	must.Do(os.WriteFile(file, must.Get(json.Marshal(overlay)), 0o644))
	for i := range b.detectors {
		d := &b.detectors[i]
		d.program = filepath.Join(b.dir, strings.ReplaceAll(d.pkg, "/", "-")+".test")
		if _, err := os.Stat(d.program); err == nil {
			continue
		}
		install.Output(ctx, root, "go", "test", "-c", "-trimpath", "-vet=off", "-overlay", file, "-o", d.program, "./"+d.pkg)
	}
	return b
}

// control runs each test without a mutant. It must pass, and shows what the test reaches.
func (b *bench) control(ctx context.Context) {
	path := filepath.Join(b.dir, "reached")
	for i := range b.detectors {
		d := &b.detectors[i]
		// Runs are the same each time, and nothing is kept that a later run would try first.
		if exec.Command(d.program, "-rapid.nofailfile", "-test.list=^$").Run() == nil {
			d.args += " -rapid.seed=1 -rapid.nofailfile -rapid.shrinktime=0s"
		}
		var tests []test
		var sum time.Duration
		for _, name := range d.names() {
			must.Do(os.WriteFile(path, make([]byte, b.mutants), 0o644))
			t := test{detector: d, names: name, took: time.Hour, all: time.Hour}
			start := time.Now()
			took, out, err := b.detect(ctx, &t, "GOZKD_MUTANTS_REACHED="+path)
			if err != nil {
				must.Failf("%s of %s fails without a mutant: %w\n%s", name, d.pkg, err, out)
			}
			t.took, t.all = took, time.Since(start)
			t.reached = must.Get(os.ReadFile(path))
			tests, sum = append(tests, t), sum+took
		}
		slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
		b.tests = append(b.tests, tests)
		fmt.Printf("%-12s%d tests, %.1f s: %s %s\n", "detector", len(tests), sum.Seconds(), d.pkg, d.args)
	}
}

// names returns the names of a detector's tests.
func (d *detector) names() (names []string) {
	of := func(option string) *regexp.Regexp {
		found := regexp.MustCompile(option + `=(\S*)`).FindStringSubmatch(d.args)
		if found == nil {
			return nil
		}
		return regexp.MustCompile(found[1])
	}
	run, skip := of("-test.run"), of("-test.skip")
	out := must.Get(exec.Command(d.program, "-test.list=.").Output())
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") && (run == nil || run.MatchString(name)) && (skip == nil || !skip.MatchString(name)) {
			names = append(names, name)
		}
	}
	return names
}

// detect runs a test, for a limited time: a mutant may never end.
func (b *bench) detect(ctx context.Context, t *test, env string) (time.Duration, []byte, error) {
	const memory = 8 << 20 // KiB: a mutant may never stop to append
	script := fmt.Sprintf("ulimit -t %.0f; ulimit -v %d; exec %s %s", 4*t.took.Seconds()+3, memory, t.program, shellQuoted(t.args))
	script += fmt.Sprintf(" '-test.run=^(%s)$' -test.failfast -test.timeout=%v", t.names, 6*t.all+10*time.Second)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = filepath.Join(b.root, t.pkg)
	cmd.Env = append(os.Environ(), env)
	if strings.Contains(t.args, "rapid") || strings.Contains(t.names, "TestSim") {
		cmd.Env = append(cmd.Env, "GOGC=400")
	}
	out, err := cmd.CombinedOutput()
	if s := cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime(), out, err
	}
	return 0, out, err
}

// shellQuoted quotes arguments that are separated by spaces.
func shellQuoted(args string) (quoted string) {
	for a := range strings.FieldsSeq(args) {
		quoted += " '" + a + "'"
	}
	return quoted
}

// all runs the mutants, and returns how many were found.
func (b *bench) all(ctx context.Context, mutants []mutant, workers int, verbose bool) (found int) {
	var mu sync.Mutex // guards found, and the output
	must.Each(workers, len(mutants), func(i int) {
		by, reached := b.try(ctx, mutants[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case by != "":
			found++
			if verbose {
				fmt.Printf("%-12s%s (%s)\n", "found", mutants[i].key, by)
			}
		case reached:
			fmt.Printf("%-12s%s\n", "SURVIVES", mutants[i].key)
		default:
			fmt.Printf("%-12s%s\n", "UNREACHED", mutants[i].key)
		}
	})
	return found
}

// try returns the test that finds a mutant, or "", and whether any reaches it. The tests that take
// little run together at first, then those that take more.
func (b *bench) try(ctx context.Context, m mutant) (by string, reached bool) {
	for _, tests := range b.tests {
		var runs []test
		most := 100 * time.Millisecond // of a run
		for _, t := range tests {
			if t.reached[m.id] == 0 {
				continue
			}
			if n := len(runs); n > 0 && runs[n-1].took+t.took <= most {
				runs[n-1].names += "|" + t.names
				runs[n-1].took, runs[n-1].all = runs[n-1].took+t.took, runs[n-1].all+t.all
			} else {
				runs, most = append(runs, t), 4*most
			}
		}
		for i := range runs {
			reached = true
			if _, out, err := b.detect(ctx, &runs[i], fmt.Sprintf("GOZKD_MUTANT=%d", m.id)); err != nil {
				_, by, _ = strings.Cut(string(out), "--- FAIL: ")
				by, _, _ = strings.Cut(by, " ")
				return runs[i].pkg + ": " + cmp.Or(by, err.Error()), true
			}
		}
	}
	return "", reached
}
