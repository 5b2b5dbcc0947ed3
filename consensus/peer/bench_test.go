package peer

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFrames sends frames over loopback as fast as the queue accepts them, until the last
// frame is received.
func BenchmarkFrames(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := &world{}
			var received atomic.Int64
			x := w.start(b, 1)
			y := w.start(b, 2, func(m *member, _ *Config) { m.receive = func(uint64, []byte) { received.Add(1) } })
			know(x, y)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			began := time.Now()
			for range b.N {
				frame := make([]byte, size)
				for !x.Send(2, frame) {
					runtime.Gosched()
				}
			}
			for received.Load() < int64(b.N) {
				runtime.Gosched()
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "frames/s")
		})
	}
}

// BenchmarkRoundTrip sends one frame in each direction: the network cost of a quorum.
func BenchmarkRoundTrip(b *testing.B) {
	w := &world{}
	back := make(chan struct{}, 1)
	x := w.start(b, 1, func(m *member, _ *Config) { m.receive = func(uint64, []byte) { back <- struct{}{} } })
	var y *member
	y = w.start(b, 2, func(m *member, _ *Config) { m.receive = func(_ uint64, frame []byte) { y.Send(1, frame) } })
	know(x, y)
	b.ReportAllocs()
	for b.Loop() {
		x.Send(2, make([]byte, 100))
		<-back
	}
}

// BenchmarkCheckpoint streams checkpoints of 256 MiB.
func BenchmarkCheckpoint(b *testing.B) {
	w := &world{}
	x := w.start(b, 1)
	y := w.start(b, 2, func(m *member, _ *Config) {
		m.checkpoint = func(_ uint64, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	})
	know(x, y)
	piece := make([]byte, 64<<10)
	const checkpointWriter = 4096
	b.SetBytes(checkpointWriter * int64(len(piece)))
	b.ReportAllocs()
	for b.Loop() {
		err := x.SendCheckpoint(b.Context(), 2, func(w io.Writer) error {
			for range checkpointWriter {
				if _, err := w.Write(piece); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
