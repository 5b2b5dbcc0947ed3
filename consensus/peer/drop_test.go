package peer

import (
	"errors"
	"sync/atomic"
	"testing"
)

// Drop closes the connections in both directions. Both sides connect again and decide about a new
// hello: a rejected peer stays disconnected, an accepted one reconnects, and frames continue in
// order.
func TestDrop(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var unwanted atomic.Bool
		a := w.start(t, 1, func(m *member, _ *Config) {
			m.accept = func(from uint64, _ []byte) error {
				if from == 2 && unwanted.Load() {
					return errors.New("of elsewhere")
				}
				return nil
			}
		})
		b, c := w.start(t, 2), w.start(t, 3)
		know(a, b, c)
		if !a.Send(2, []byte("before")) {
			t.Fatal("not sent")
		}
		b.expect("1: before")

		a.Drop(2) // b is still welcome
		a.await(2, "down")
		b.await(1, "down")
		a.await(2, "up")
		b.await(1, "up")
		if !a.Send(2, []byte("after")) || !b.Send(1, []byte("back")) {
			t.Fatal("not sent")
		}
		b.expect("1: after")
		a.expect("2: back")
		if s := a.status(3); !s.Connected || !s.Incoming {
			t.Errorf("connections of another peer: %+v", s)
		}

		unwanted.Store(true)
		a.Drop(2)
		a.await(2, "down")
		b.await(1, "down")
		eventually(t, "both have been refused", func() bool {
			s := a.status(2)
			return s.LastError != nil && s.IncomingError != nil && !s.Connected && !s.Incoming
		})
		if a.Send(2, []byte("never")) {
			t.Error("sent to one that is not accepted")
		}

		a.Drop(9) // no peer
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		a.Drop(2)
	})
}
