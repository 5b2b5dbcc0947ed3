package cache_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/zktest"
)

// BenchmarkChildren_Fill measures from Start to complete, over TCP on the loopback. It reports the
// memory and goroutines that stay in the client for each znode of 100 bytes.
func BenchmarkChildren_Fill(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := zktest.Start(b)
			load := map[string]string{"/a": ""}
			for i := range n {
				load[fmt.Sprintf("/a/%09d", i)] = fmt.Sprintf("%0100d", i)
			}
			s.Load(load)
			c, err := recipes.Connect(b.Context(), []string{s.ConnectString()})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			var before, after runtime.MemStats
			goroutines := 0
			b.StopTimer()
			for range b.N {
				runtime.GC()
				runtime.ReadMemStats(&before)
				goroutines -= runtime.NumGoroutine()
				b.StartTimer()
				children := cache.NewChildren(c, "/a")
				must(b, children.Start(b.Context()))
				if err := children.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				goroutines += runtime.NumGoroutine()
				if b.N == 1 { // later rounds find the watches of the first
					runtime.GC()
					runtime.ReadMemStats(&after)
					b.ReportMetric(float64(int64(after.HeapInuse+after.StackInuse)-int64(before.HeapInuse+before.StackInuse))/float64(n), "B/znode")
				}
				must(b, children.Close())
			}
			b.ReportMetric(float64(goroutines)/float64(b.N)/float64(n), "goroutines/znode")
		})
	}
}

// BenchmarkTree_Fill is the same for trees of n znodes, with a recursive watch and without.
func BenchmarkTree_Fill(b *testing.B) {
	const n = 40000
	for name, o := range map[string]cache.TreeOptions{"recursive": {}, "watches": {Depth: 100}} {
		b.Run(name, func(b *testing.B) {
			s := zktest.Start(b)
			load := map[string]string{"/a": ""}
			for i := range n {
				load[fmt.Sprintf("/a/%03d/%09d", i%100, i)], load[fmt.Sprintf("/a/%03d", i%100)] = fmt.Sprintf("%0100d", i), ""
			}
			s.Load(load)
			c, err := recipes.Connect(b.Context(), []string{s.ConnectString()})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			goroutines := runtime.NumGoroutine()
			tree := cache.NewTree(c, "/a", o)
			defer tree.Close()
			b.ResetTimer()
			must(b, tree.Start(b.Context()))
			if err := tree.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapInuse+after.StackInuse)-int64(before.HeapInuse+before.StackInuse))/1e6, "MB")
		})
	}
}

// BenchmarkChildren_Change measures from a change of one of 1000 children until a listener has it.
func BenchmarkChildren_Change(b *testing.B) {
	s := zktest.Start(b)
	load := map[string]string{"/a": ""}
	for i := range 1000 {
		load[fmt.Sprintf("/a/%09d", i)] = ""
	}
	s.Load(load)
	c, err := recipes.Connect(b.Context(), []string{s.ConnectString()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	children := cache.NewChildren(c, "/a")
	defer children.Close()
	changed := make(chan struct{}, 1)
	children.Listen(b.Context(), func(e cache.Event) {
		if e.Type == cache.Changed {
			changed <- struct{}{}
		}
	})
	must(b, children.Start(b.Context()))
	if err := children.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // until the listener has the first 1000 events
	for b.Loop() {
		if _, err := c.Set(b.Context(), "/a/000000500", nil, -1); err != nil {
			b.Fatal(err)
		}
		<-changed
	}
}
