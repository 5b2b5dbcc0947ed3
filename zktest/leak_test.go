package zktest_test

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/zktest"
)

// holdings is the resources of this process.
type holdings struct {
	goroutines, files int // files is -1 where they cannot be counted
	heap              uint64
}

func measure() (h holdings) {
	for range 3 { // finalizers need more than one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.goroutines, h.heap, h.files = runtime.NumGoroutine(), m.HeapAlloc, -1
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.files = len(files)
	}
	return h
}

// scaled returns n, or less in a short test run.
func scaled(n int) int {
	if testing.Short() || raceEnabled {
		return max(1, n/10)
	}
	return n
}

// settled measures until no more than before is left, or for a long time: clients end a moment
// after their Close.
func settled(t *testing.T, before holdings) (after holdings) {
	for soon := watchdog.Context(t, 5*time.Second); soon.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if after = measure(); after.goroutines <= before.goroutines && after.files <= before.files {
			break
		}
	}
	return after
}

// Closed servers leave nothing. Not parallel, because the counts cover the process.
func TestClose_LeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name                string
		rounds, at, members int
		onDisk              bool
	}{
		{"servers", 1000, 1, 1, false},
		{"servers on disk", 30, 1, 1, true},
		{"servers at the same time", 1, 200, 1, false},
		{"ensembles", 50, 1, 3, false},
		{"ensembles at the same time", 1, 20, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []zktest.Option
			if c.onDisk {
				opts = append(opts, zktest.OnDisk())
			}
			one := func() {
				r := record(t, func(t testing.TB) {
					e := zktest.StartEnsemble(t, c.members, opts...)
					must[string](t)(e.Connect(t).Create("/a", nil, 1, open))
				})
				if r.Failed() {
					t.Error(r.text())
				}
			}
			one() // allocates pools and things made once
			rounds, at := scaled(c.rounds), c.at
			if at > 1 {
				at = scaled(at)
			}
			// More goroutines at a time than ever before leave memory for the next ones; on a slow
			// machine that may happen at any time. What every series leaves is a leak.
			const series, limit = 3, 2 << 20
			for n := 1; n <= series; n++ {
				before, begin := measure(), time.Now()
				for range rounds {
					var wg sync.WaitGroup
					for range at {
						wg.Go(one) // awaited below
					}
					wg.Wait()
				}
				took := time.Since(begin)
				after := settled(t, before)
				t.Logf("%d × %d in %v: before %+v, after %+v", rounds, at, took, before, after)
				if after.goroutines > before.goroutines || after.files > before.files {
					t.Errorf("before %+v, after %+v", before, after)
				}
				if after.heap <= before.heap+limit {
					break
				}
				if n == series {
					t.Errorf("heap: %d bytes before the last of %d series, %d after", before.heap, series, after.heap)
				}
			}
		})
	}
}
