package consensus

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// counter is the cheapest state machine: Ref is a channel, or nil.
type counter struct{ list }

func (c *counter) Apply(batches []Batch) {
	for i := range batches {
		for _, r := range batches[i].Requests {
			if done, ok := r.Ref.(chan struct{}); ok {
				done <- struct{}{}
			}
		}
	}
}

// BenchmarkPropose sends requests of 100 bytes through the whole of consensus, with several in
// flight. B.TempDir decides which disk is measured.
func BenchmarkPropose(b *testing.B) {
	for _, where := range []string{"memory", "disk without sync", "disk"} {
		for _, depth := range []int{1, 16, 256, 4096} {
			b.Run(fmt.Sprintf("%s/%d in flight", where, depth), func(b *testing.B) {
				cfg := Config{StateMachine: &counter{}, CheckpointRequests: 1 << 30}
				switch where {
				case "disk":
					cfg.Dir = b.TempDir()
				case "disk without sync":
					cfg.Dir, cfg.NoSync = b.TempDir(), true
				}
				benchmarkPropose(b, cfg, depth)
			})
		}
	}
}

func benchmarkPropose(b *testing.B, cfg Config, depth int) {
	n, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }() // stopped by cancel and awaited below
	<-n.Ready()
	payload, done := make([]byte, 100), make(chan struct{}, depth)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i >= depth {
			<-done
		}
		n.Propose(payload, done)
	}
	for range min(depth, b.N) {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	cancel()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		b.Fatal(err)
	}
}

// BenchmarkStart measures Open and Run until the node is ready to serve, in an empty and in a used
// directory.
func BenchmarkStart(b *testing.B) {
	run := func(b *testing.B, dir string) {
		n, err := Open(Config{Dir: dir, StateMachine: &list{}})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }() // stopped by cancel and awaited below
		<-n.Ready()
		b.StopTimer()
		cancel()
		if err := <-ended; !errors.Is(err, ErrClosed) {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("memory", func(b *testing.B) {
		for range b.N {
			run(b, "")
		}
	})
	b.Run("empty directory", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			dir := b.TempDir()
			b.StartTimer()
			run(b, dir)
		}
	})
	b.Run("used directory", func(b *testing.B) {
		dir := b.TempDir()
		for range b.N {
			run(b, dir)
		}
	})
}
