package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// tcpPair returns both ends of a loopback connection, which are closed at the end of the test.
func tcpPair(t *testing.T) (conn, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no loopback:", err)
	}
	defer func() { _ = l.Close() }()
	if conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if other, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return conn, other
}

// P1: frames stay whole and in order, whether the caller of Flush or the goroutine of the peer
// writes them, and if the socket accepts only a part.
func TestP1_FlushKeepsTheOrder(t *testing.T) {
	conn, other := tcpPair(t)
	if err := conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil { // so that it is full often
		t.Fatal(err)
	}

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
		if typ == typeHeartbeat {
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

// A peer that never reads does not block Flush. Its queue is bounded, and is dropped with the
// connection, even while Flush runs.
func TestFlush_ToOneThatNeverReads(t *testing.T) {
	conn, _ := tcpPair(t)

	const limit = 1 << 20
	p := newPeer(&Network{cfg: Config{QueueBytes: limit, Logger: hclog.NewNullLogger()}}, 2)
	p.setConnected("", "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.write(ctx, conn) }() // stopped by cancel and the end of conn, awaited below
	frame := make([]byte, 1000)
	full := 0 // times in a row that each frame was dropped: before, the kernel still takes some
	eventually(t, "so much waits that frames are dropped", func() bool {
		full++
		for range 1000 {
			if p.queue.put(frame) {
				full = 0
			}
			p.flush()
		}
		return full == 3
	})
	if bytes := p.queue.bytes.Load(); bytes < limit || bytes > limit+2*int64(len(frame)) {
		t.Errorf("%d bytes wait, the limit is %d", bytes, limit)
	}
	stop, flushed := make(chan struct{}), make(chan struct{})
	go func() { // stopped by stop, awaited below
		defer close(flushed)
		for {
			select {
			case <-stop:
				return
			default:
				p.queue.put(frame)
				p.flush()
			}
		}
	}()
	cancel()
	_ = conn.Close()
	if err := <-ended; err == nil {
		t.Error("write ends without an error")
	}
	p.setDisconnected()
	close(stop)
	<-flushed
	if p.queue.put(frame); p.queue.bytes.Load() != 0 || len(p.direct.unwritten)+len(p.direct.frames) != 0 {
		t.Errorf("%d bytes wait, %d of them in an unfinished frame", p.queue.bytes.Load(), len(p.direct.unwritten))
	}
}

// A connection carries a heartbeat at once, and later one in each second without frames, whoever
// writes the frames.
func TestHeartbeat_OnlyWithoutFrames(t *testing.T) {
	for name, w := range map[string]interface {
		io.Writer
		String() string
	}{"direct": &tryBuffer{}, "by the goroutine of the peer": &bytes.Buffer{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(&Network{cfg: Config{QueueBytes: 1 << 20, Logger: hclog.NewNullLogger()}}, 2)
				p.queue.open()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- p.write(ctx, w) }() // stopped by cancel, awaited below
				const busy, idle = 10, 5                 // seconds
				for range 2 * busy {
					time.Sleep(time.Second / 2)
					p.queue.put([]byte("frame"))
					p.flush()
				}
				time.Sleep(idle*time.Second + time.Second/2)
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				types := map[uint32]int{}
				for r := newFrameReader(strings.NewReader(w.String()), 1<<20); ; {
					typ, _, err := r.next(nil)
					if err != nil {
						break
					}
					types[typ]++
				}
				// The frame of the last busy second may come just after its tick.
				if n := types[typeHeartbeat]; types[typeData] != 2*busy || n < 1+idle-1 || n > 1+idle {
					t.Errorf("%d frames and %d heartbeats", types[typeData], n)
				}
			})
		})
	}
}

// tryBuffer is a buffer that can be written without waiting.
type tryBuffer struct{ bytes.Buffer }

func (b *tryBuffer) TryWrite(p []byte) (int, error) { return b.Write(p) }
