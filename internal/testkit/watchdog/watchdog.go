// Package watchdog ends a test binary in which a test hangs, and names the test.
//
// `go test -timeout` bounds a whole package, so its limit must exceed the time of the slowest
// package on the slowest machine, and a hanging test wastes all of it. The watchdog bounds each
// step of a package instead: the time between two moments at which a test, a subtest, a fuzz seed
// or a synctest bubble begins or ends. No step of the ordinary suite takes a quarter of the limit
// on a quiet machine.
//
// On a busy machine a test that makes progress must not be stopped, so wall time is not the
// measure. The watchdog counts a second of wall time as 1/load seconds, where load is the number of
// runnable threads per CPU, at least 1. CPU time of the process would not do: a test that waits for
// ever uses almost none, and neither does a test that waits for its child processes. If the system
// does not tell the load, the watchdog assumes unknownLoad.
//
// The watchdog is off while benchmarks run, while a fuzz target runs, with -timeout 0, and for
// tests of make exhaustive, which have the limit of -timeout alone. This package does not import
// internal/testkit/exhaustive: make exhaustive runs the packages that do.
package watchdog

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// limit is how many seconds without load a step may take. With the time to notice the load and
	// to print the stacks, a hanging test fails within a minute on a quiet machine.
	limit    = 50 * time.Second
	interval = time.Second
	// unknownLoad is the load assumed if the system does not tell it.
	unknownLoad = 4
)

// TestingM is the type of the argument of TestMain.
type TestingM interface{ Run() int }

// Watch returns an m whose Run is watched: goleak.VerifyTestMain(watchdog.Watch(m)).
func Watch(m TestingM) TestingM { return watched{m} }

type watched struct{ m TestingM }

// Run runs the tests. If a test hangs, Run panics in a goroutine of its own.
func (w watched) Run() int {
	flag.Parse()
	if !applies() {
		return w.m.Run()
	}
	d := &dog{load: systemLoad, buf: make([]byte, 1<<20)}
	d.start()
	defer d.stop()
	return w.m.Run()
}

// applies reports whether this run of the binary is a run of ordinary tests.
func applies() bool {
	value := func(name string) string {
		if f := flag.Lookup("test." + name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return value("bench") == "" && value("fuzz") == "" && value("fuzzworker") != "true" && value("timeout") != "0s" && os.Getenv("GOZKD_EXHAUSTIVE") == ""
}

// dog watches the steps of a run of the tests. It uses a timer instead of a goroutine, because
// tests look for goroutines that leak.
type dog struct {
	load func() float64

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	step    []string      // the goroutines of tests that ran at the last look
	spent   time.Duration // without load
	real    time.Duration
	buf     []byte // of stacks
}

func (d *dog) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(interval, d.look)
}

func (d *dog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
}

// look panics if the step has reached the limit. Otherwise it starts the timer again.
func (d *dog) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	if hangs := d.charge(d.stacks()); hangs != "" {
		fmt.Fprintln(os.Stderr) // the last line of the output may have no end
		panic(hangs)
	}
	d.timer.Reset(interval)
}

// charge adds an interval to the time of the step, or begins a new step if the goroutines of tests
// are not the same as at the last look. It returns the report on a step that reached the limit,
// otherwise "".
//
// An interval counts once however late the timer fires, so a machine that was suspended charges
// nothing.
func (d *dog) charge(dump []byte) (hangs string) {
	step := testGoroutines(dump)
	if !slices.Equal(step, d.step) {
		d.step, d.spent, d.real = step, 0, 0
		return ""
	}
	d.real += interval
	d.spent += withoutLoad(interval, d.load())
	if d.spent < limit {
		return ""
	}
	return fmt.Sprintf("watchdog: %s hangs: no test began or ended for %v, which count as %v without other load. All goroutines:\n\n%s",
		strings.Join(testNames(dump), ", "), d.real, d.spent.Round(time.Second), dump)
}

// withoutLoad returns how much of d counts at this load.
func withoutLoad(d time.Duration, load float64) time.Duration {
	return time.Duration(float64(d) / max(1, load))
}

// stacks returns the stacks of all goroutines. It uses the buffer that Run allocates before the
// first test, because tests measure what they allocate.
func (d *dog) stacks() []byte {
	for {
		if n := runtime.Stack(d.buf, true); n < len(d.buf) {
			return d.buf[:n]
		}
		d.buf = make([]byte, 2*len(d.buf)+1<<20)
	}
}

var (
	// goroutine matches the head of a stack.
	goroutine = regexp.MustCompile(`^goroutine \d+ `)
	// testFunction matches a frame of a test function, or of a function literal in it.
	testFunction = regexp.MustCompile(`(?m)^\S*\.((?:Test|Fuzz|Example)\w+)(?:\.func[\d.]+)*\(`)
)

// testGoroutines returns the heads of the stacks of goroutines that package testing started: for
// each test, subtest and fuzz seed, and for each bubble.
func testGoroutines(dump []byte) []string {
	var ids []string
	for stack := range bytes.SplitSeq(dump, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("\ntesting.tRunner(")) { // no allocation for the other goroutines
			ids = append(ids, string(goroutine.Find(stack)))
		}
	}
	slices.Sort(ids)
	return ids
}

// testNames returns the names of the test functions that appear in the stacks.
func testNames(dump []byte) []string {
	var names []string
	for _, m := range testFunction.FindAllSubmatch(dump, -1) {
		if name := string(m[1]); name != "TestMain" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return []string{"TestMain"}
	}
	return names
}
