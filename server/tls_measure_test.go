package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// inUse returns the bytes of the heap and of stacks that are in use.
func inUse() int64 {
	for range 3 { // empties pools, and halves stacks that are too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// An idle session with TLS and a client's certificate holds little memory, also after it was used.
// Other goroutines of the process allocate meanwhile, so the least of some readings counts.
func TestTLS_IdleSessionsAreSmall(t *testing.T) {
	const sessions, most = 50, 24 << 10
	c := newCerts(t)
	with := c.client(t, "alice")
	s := startTLS(t, server.Config{PortUnification: true, MaxClientConns: -1}, c.server(t, tls.RequireAndVerifyClientCert))
	if err := s.Load(t.Context(), map[string][]byte{"/n": make([]byte, 40_000)}); err != nil {
		t.Fatal(err)
	}
	measure := func(secure bool) int64 {
		before := inUse()
		var open []net.Conn
		for range sessions {
			r := dialTLS(t, s.Addr(), nil)
			nc := r.nc
			if secure {
				r.nc = tls.Client(nc, with)
			}
			r.connect(60_000, 0, nil)
			for xid := range int32(10) {
				r.call(xid+1, proto.OpGetData, &proto.PathWatchRequest{Path: "/n"})
			}
			open = append(open, nc) // the client's own TLS is garbage now
		}
		per := (inUse() - before) / sessions
		for _, nc := range open {
			_ = nc.Close()
		}
		for s.Facts().Stats().Connections > 0 {
			runtime.Gosched()
		}
		return per
	}
	for range 5 {
		plain, secure := measure(false), measure(true)
		t.Logf("an idle session holds %d bytes, with TLS %d", plain, secure)
		if secure <= most {
			return
		}
	}
	t.Errorf("an idle session with TLS holds more than %d bytes", most)
}

// BenchmarkPorts compares ports with and without TLS: 16 connections with 16 reads, or writes, in
// flight on each. The client is in the same process and pays for TLS, too.
func BenchmarkPorts(b *testing.B) {
	const conns, window = 16, 16
	c := newCerts(b)
	s := startTLS(b, server.Config{PortUnification: true, MaxClientConns: -1}, c.server(b, tls.RequireAndVerifyClientCert))
	if err := s.Load(b.Context(), map[string][]byte{"/n": make([]byte, 100)}); err != nil {
		b.Fatal(err)
	}
	for _, op := range []struct {
		name string
		op   proto.OpCode
		body record
	}{
		{"get", proto.OpGetData, &proto.PathWatchRequest{Path: "/n"}},
		{"set", proto.OpSetData, &proto.SetDataRequest{Path: "/n", Data: make([]byte, 100), Version: -1}},
	} {
		for name, with := range map[string]*tls.Config{"plain": nil, "TLS": c.client(b, "alice")} {
			b.Run(fmt.Sprintf("%s/%s", op.name, name), func(b *testing.B) {
				var all []*raw
				for range conns {
					r := dialTLS(b, s.Addr(), with)
					r.connect(60_000, 0, nil)
					all = append(all, r)
				}
				frame := op.body.Append((&proto.RequestHeader{Xid: 1, Op: op.op}).Append([]byte{0, 0, 0, 0}))
				frame[2], frame[3] = byte((len(frame)-4)>>8), byte(len(frame)-4)
				var batch []byte
				for range window {
					batch = append(batch, frame...)
				}
				b.ResetTimer()
				var work sync.WaitGroup
				for _, r := range all {
					work.Go(func() {
						in := bufio.NewReaderSize(r.nc, 64<<10)
						var head [4]byte
						for n := b.N/conns/window + 1; n > 0; n-- {
							if _, err := r.nc.Write(batch); err != nil {
								b.Error(err)
								return
							}
							for range window {
								if _, err := io.ReadFull(in, head[:]); err != nil {
									b.Error(err)
									return
								}
								if _, err := in.Discard(int(head[2])<<8 | int(head[3])); err != nil {
									b.Error(err)
									return
								}
							}
						}
					})
				}
				work.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			})
		}
	}
}
