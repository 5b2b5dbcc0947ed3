package faultproxy

import (
	"io"
	"net"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// BenchmarkRoundTrip is one small request and its answer over TCP, without a gate, behind one, and
// with rules that do not match.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name  string
		gate  bool
		fault *Fault
	}{
		{"bare", false, nil},
		{"gate", true, nil},
		{"rule", true, &Fault{Kind: Fail, Op: "get", PathPrefix: "/elsewhere", Code: proto.ErrNoNode}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			var rules Rules
			if c.gate {
				l = NewGate(l, &rules)
			}
			if c.fault != nil {
				if _, err := rules.Add(*c.fault); err != nil {
					b.Fatal(err)
				}
			}
			request := requestFrame(1, proto.OpGetData, path("/some/path/of/a/usual/length"))
			reply := replyFrame(1, 1, proto.OK, make([]byte, 100))
			done := make(chan struct{})
			go func() { // ends with the listener, or when the client is gone; awaited below
				defer close(done)
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { _ = nc.Close() }()
				first := make([]byte, len(connectFrame(0)))
				_, _ = io.ReadFull(nc, first)
				_, _ = nc.Write(welcomeFrame(1))
				for p := make([]byte, 32<<10); ; {
					if _, err := io.ReadFull(nc, p[:len(request)]); err != nil {
						return
					}
					if _, err := nc.Write(reply); err != nil {
						return
					}
				}
			}()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			_, _ = nc.Write(connectFrame(0))
			p := make([]byte, len(reply)+100)
			if _, err := io.ReadFull(nc, p[:len(welcomeFrame(1))]); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(request); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, p[:len(reply)]); err != nil {
					b.Fatal(err)
				}
			}
			_ = nc.Close()
			<-done
			_ = l.Close()
		})
	}
}

// null is a connection that has the same request for every Read and takes every answer: what a
// round trip costs in the gate alone.
type null struct {
	net.Conn
	request []byte
}

func (n *null) Read(p []byte) (int, error)  { return copy(p, n.request), nil }
func (n *null) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkFilter is the same without the network.
func BenchmarkFilter(b *testing.B) {
	for _, c := range []struct {
		name  string
		fault *Fault
	}{{"gate", nil}, {"rule", &Fault{Kind: Fail, Op: "get", PathPrefix: "/elsewhere", Code: proto.ErrNoNode}}} {
		b.Run(c.name, func(b *testing.B) {
			var rules Rules
			if c.fault != nil {
				if _, err := rules.Add(*c.fault); err != nil {
					b.Fatal(err)
				}
			}
			inner := &null{request: connectFrame(0)}
			nc := newConn(NewGate(nil, &rules), inner)
			p := make([]byte, 32<<10)
			_, _ = nc.Read(p)
			_, _ = nc.Write(welcomeFrame(1))
			inner.request = requestFrame(1, proto.OpGetData, path("/some/path/of/a/usual/length"))
			reply := replyFrame(1, 1, proto.OK, make([]byte, 100))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = nc.Read(p)
				_, _ = nc.Write(reply)
			}
		})
	}
}
