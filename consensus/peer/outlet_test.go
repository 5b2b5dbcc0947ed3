package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// P1: frames keep their order, whole, whether the caller of Flush or the goroutine of the peer writes them, and where the socket takes only a piece.
func TestP1_FlushKeepsTheOrder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no loopback:", err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil { // so that it is full often
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	p := newPeer(&Network{cfg: Config{QueueBytes: 1 << 30, Logger: hclog.NewNullLogger()}}, 2)
	p.queue.open()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.write(ctx, conn) }()
	const n = 20_000
	go func() {
		for i := range n {
			p.queue.put(binary.BigEndian.AppendUint64(make([]byte, 0, 2000), uint64(i))[:8+i%1990])
			if i%3 == 0 {
				p.flush()
			}
		}
		p.flush()
	}()
	r := newFrameReader(other, 1<<20)
	for i := 0; i < n; {
		typ, payload, err := r.next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if typ == typeBeat {
			continue
		}
		if got := binary.BigEndian.Uint64(payload); got != uint64(i) || len(payload) != 8+i%1990 {
			t.Fatalf("frame %d has number %d and %d bytes", i, got, len(payload))
		}
		i++
	}
	eventually(t, "nothing waits", func() bool { return p.queue.bytes.Load() == 0 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
