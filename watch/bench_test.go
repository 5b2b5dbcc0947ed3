package watch

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/gozkd/gozkd/proto"
)

// aliasing returns a string as a decoder with AliasStrings does.
func aliasing(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func pathNames(n int) [][]byte {
	names := make([][]byte, n)
	for i := range names {
		names[i] = fmt.Appendf(nil, "/service/instance-%08d", i)
	}
	return names
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkMemory reports the live heap per watch, including the bytes of the paths.
func BenchmarkMemory(b *testing.B) {
	for _, bc := range []struct {
		name         string
		conns, paths int
		shared       bool
	}{
		{"1e6_paths_1_watcher", 1000, 1_000_000, false},
		{"1e3_paths_1e3_watchers", 1000, 1000, true},
	} {
		b.Run(bc.name, func(b *testing.B) {
			names := pathNames(bc.paths)
			for b.Loop() {
				before := liveHeap()
				table, watches := New(), 0
				for i, name := range names {
					if !bc.shared {
						table.Add(ConnID(i%bc.conns+1), aliasing(name), Data)
						watches++
						continue
					}
					for c := range bc.conns {
						table.Add(ConnID(c+1), aliasing(name), Data)
						watches++
					}
				}
				b.ReportMetric(float64(liveHeap()-before)/float64(watches), "B/watch")
				runtime.KeepAlive(table)
			}
		})
	}
}

// BenchmarkMatch sets and fires one-shot watches. The result is per watch, with n of them on a
// path.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("one_shot_%d", n), func(b *testing.B) {
			table, dst := New(), make([]ConnID, 0, n)
			table.Add(ConnID(n+1), "/service/other", Data) // so that the table never becomes empty
			b.ReportAllocs()
			for b.Loop() {
				for c := range n {
					table.Add(ConnID(c+1), "/service/a", Data)
				}
				if dst = table.Match(dst[:0], proto.EventDataChanged, "/service/a"); len(dst) != n {
					b.Fatalf("matched %d, want %d", len(dst), n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
		b.Run(fmt.Sprintf("persistent_%d", n), func(b *testing.B) {
			table, dst := New(), make([]ConnID, 0, n)
			for c := range n {
				table.Add(ConnID(c+1), "/service/a", Persistent)
			}
			b.ReportAllocs()
			for b.Loop() {
				if dst = table.Match(dst[:0], proto.EventDataChanged, "/service/a"); len(dst) != n {
					b.Fatalf("matched %d, want %d", len(dst), n)
				}
			}
		})
	}
	b.Run("nobody_on_the_path", func(b *testing.B) {
		table := New()
		table.Add(1, "/", PersistentRecursive|Persistent)
		table.Remove(1, "/", proto.WatcherPersistentRecursive)
		for b.Loop() {
			table.Match(nil, proto.EventDataChanged, "/service/a/b/c")
		}
	})
}

// BenchmarkRemoveConn disconnects 10,000 watchers of one path, in the order of their arrival and
// shuffled.
func BenchmarkRemoveConn(b *testing.B) {
	const n = 10_000
	order := make([]ConnID, n)
	for i := range order {
		order[i] = ConnID(i*7919%n + 1) // 7919 is prime, so this is a permutation
	}
	for name, order := range map[string][]ConnID{"in_order": slices.Sorted(slices.Values(order)), "shuffled": order} {
		b.Run(name, func(b *testing.B) {
			table := New()
			for b.Loop() {
				for c := range n {
					table.Add(ConnID(c+1), "/service/a", Data|Child)
				}
				for _, c := range order {
					table.RemoveConn(c)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/conn")
		})
	}
}
