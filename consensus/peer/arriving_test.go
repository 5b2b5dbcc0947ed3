package peer

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"
)

// slowConn takes a second for each MiB that is written to it.
type slowConn struct{ net.Conn }

func (c slowConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 4<<10) {
		time.Sleep(time.Duration(len(part)) * time.Second / (1 << 20))
		m, err := c.Conn.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// While a frame takes long to arrive, its receiver is told that the sender is alive, and not
// otherwise.
func TestArriving(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		told := make(chan uint64, 1000)
		sender := w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := w.dial(ctx, address)
				return slowConn{conn}, err
			}
		})
		receiver := w.start(t, 2, func(m *member, cfg *Config) {
			cfg.Arriving = func(from uint64) { told <- from }
			m.receive = func(_ uint64, frame []byte) { m.frames <- strconv.Itoa(len(frame)) }
		})
		know(sender, receiver)
		for _, c := range []struct{ bytes, least, most int }{{100, 0, 0}, {32 << 10, 0, 0}, {200 << 10, 2, 4}, {2 << 20, 30, 40}} {
			sender.Send(2, make([]byte, c.bytes))
			if got := <-receiver.frames; got != strconv.Itoa(c.bytes) {
				t.Fatalf("%s bytes arrived of %d", got, c.bytes)
			}
			n := len(told)
			if n < c.least || n > c.most {
				t.Errorf("%d bytes: told %d times, want %d to %d", c.bytes, n, c.least, c.most)
			}
			for range n {
				if from := <-told; from != 1 {
					t.Errorf("told of member %d", from)
				}
			}
		}
	})
}
