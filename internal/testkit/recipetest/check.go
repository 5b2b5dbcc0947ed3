package recipetest

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Check is rapid.Check for scenarios. draw draws a scenario, and Check runs the scenario in a
// bubble with a World of that many members. The scenario itself must not draw. When a scenario
// fails, rapid shrinks the draw and prints how to run the scenario again.
//
//	recipetest.Check(t, func(rt *rapid.T) (members int, scenario func(t testing.TB, w *recipetest.World)) {
//		members = rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
//		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
//		return members, func(t testing.TB, w *recipetest.World) {
//			...
//			w.Apply(troubles)
//			...
//		}
//	})
func Check(t *testing.T, draw func(rt *rapid.T) (members int, scenario func(t testing.TB, w *World))) {
	t.Helper()
	check(t, t, draw)
}

// check reports failures to tb and makes bubbles from t.
func check(t *testing.T, tb rapid.TB, draw func(rt *rapid.T) (members int, scenario func(t testing.TB, w *World))) {
	tb.Helper()
	var (
		simulated time.Duration
		faults    atomic.Int64 // of all Worlds
	)
	began := time.Now()
	for once := true; once || simulated.Hours() < *hours && !tb.Failed(); once = false {
		rapid.Check(tb, func(rt *rapid.T) {
			members, scenario := draw(rt)
			var r *recorder
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r = record(t, func(t testing.TB) {
					w := NewWorld(t, members)
					scenario(t, w)
					faults.Add(w.faults.Load())
				})
				simulated += time.Since(began)
			})
			if r.Failed() {
				rt.Log(r.text())
				rt.Fatalf("%s", r.first)
			}
		})
	}
	if *hours > 0 {
		t.Logf("simulated %.1f hours with %d faults in %v", simulated.Hours(), faults.Load(), time.Since(began).Round(time.Second))
	}
}

// hours is how much time each Check simulates at least.
var hours = flag.Float64("recipetest.hours", 0, "simulate this many hours in each property")

// recorder is a test whose failure does not fail the real test: rapid must see many failures while
// searching for the smallest draw.
type recorder struct {
	testing.TB // of the bubble; for methods that are not recorded

	mu     sync.Mutex
	failed bool
	first  string // the first error
	lines  []string
}

// record runs f as a test and returns its outcome, to which the cleanups of t may add.
func record(t testing.TB, f func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	r.run(func() { f(r) })
	return r
}

// run runs f, which may end its goroutine or panic.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	// Ends with f; awaited below.
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.TB.Cleanup(func() { r.run(f) }) }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Log(args ...any)                 { r.note(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.note(false, fmt.Sprintf(format, args...)) }

func (r *recorder) Fail()                             { r.note(true, "failed") }
func (r *recorder) Error(args ...any)                 { r.note(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, fmt.Sprintf(format, args...)) }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) note(failed bool, line string) {
	line = strings.TrimSuffix(line, "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	if failed && !r.failed {
		r.failed, r.first = true, line
	}
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}
