package server

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
)

// BenchmarkBurst handles a burst of reads without a socket: the cost of a pipelining client's
// request apart from the system calls.
func BenchmarkBurst(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("getData=%d", n), func(b *testing.B) {
			s := startInProcess(b, Config{})
			if err := s.Load(b.Context(), map[string][]byte{"/bench/data/n0001": make([]byte, 100)}); err != nil {
				b.Fatal(err)
			}
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			c := newConn(s, here, portPlain, "client")
			c.session = 1
			var frames []byte
			for i := range n {
				f := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(i))
				f = binary.BigEndian.AppendUint32(f, uint32(proto.OpGetData))
				f = (&proto.PathWatchRequest{Path: "/bench/data/n0001"}).Append(f)
				binary.BigEndian.PutUint32(f, uint32(len(f)-4))
				frames = append(frames, f...)
			}
			go func() { _, _ = there.Write(frames) }() // ends when in has all, or with the pipe
			var in link.Input
			for in.Len() < len(frames) {
				if err := in.Fill(&c.Link); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				in.Back(0)
				c.Out = link.Output{Buf: c.Out.Buf[:0]}
				if _, err := c.burst(&in, s.cfg.Now(), false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/read")
		})
	}
}
