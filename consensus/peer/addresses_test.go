package peer

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/pipenet"
)

// A peer with several addresses is reached at the first that answers. One that does not answer
// costs AddressPatience.
func TestDial_SeveralAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		b := w.start(t, 2, func(_ *member, cfg *Config) {
			cfg.AddressPatience = 300 * time.Millisecond
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == "silent" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return w.dial(ctx, address)
			}
		})
		a.SetPeers(map[uint64]string{2: "nobody|" + b.address})
		began := time.Now()
		b.SetPeers(map[uint64]string{1: "nobody|silent|" + a.address})
		b.await(1, "up")
		a.await(2, "up")
		if took := time.Since(began); took < 300*time.Millisecond || took > 600*time.Millisecond {
			t.Errorf("connected after %v", took)
		}
		b.SetPeers(nil)
		b.await(1, "down")
		b.SetPeers(map[uint64]string{1: "nobody|nowhere"})
		b.await(1, "refused")
		b.SetPeers(map[uint64]string{1: "nobody|silent|nowhere"})
		b.await(1, "down") // and not refused: it may be there
		eventually(t, "the reason is the silent address", func() bool {
			return strings.Contains(b.status(1).LastError.Error(), "deadline")
		})
	})
}

// A long AddressPatience leaves time for the other addresses: when this member connects, and when
// it asks the peer whether a connection is its own.
func TestDial_PatienceIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		patient := func(_ *member, cfg *Config) {
			cfg.AddressPatience = time.Hour
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == "silent" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return w.dial(ctx, address)
			}
		}
		a, b := w.start(t, 1, patient), w.start(t, 2, patient)
		a.SetPeers(map[uint64]string{2: "silent|" + b.address})
		b.SetPeers(map[uint64]string{1: "silent|silent|" + a.address})
		a.await(2, "up")
		b.await(1, "up")
	})
}

// A peer that moves is reached and asked at its former address, also when somebody else listens at
// the new one, until it is connected at the new address. The former address does not count any
// longer then.
func TestSetPeers_FormerAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.start(t, 1), w.start(t, 2), w.start(t, 3)
		know(a, b)
		at := func(address string, m *member) { // who listens there
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.listeners, address)
			if m != nil {
				w.listeners[address] = m.cfg.Listener.(*pipenet.Listener)
			}
		}
		reconnects := func() {
			t.Helper()
			b.Drop(1) // also b's own connection to a, which a then asks about
			for m, id := range map[*member]uint64{a: 2, b: 1} {
				m.await(id, "down")
				m.await(id, "up")
			}
			a.Send(2, []byte("hello"))
			b.expect("1: hello")
		}
		a.SetPeers(map[uint64]string{2: "new"})
		time.Sleep(time.Minute)
		if n := len(a.statesOf(2)); n != 0 || a.status(2).Address != "new" {
			t.Fatalf("%d changes of state: %+v", n, a.status(2))
		}
		reconnects()
		at("new", c)
		time.Sleep(time.Minute)
		reconnects()
		a.SetPeers(map[uint64]string{2: b.address}) // back, and away again
		a.SetPeers(map[uint64]string{2: "new"})
		reconnects()

		at("new", b)
		a.await(2, "down")
		a.await(2, "up")
		at(b.address, nil)
		reconnects()
		at(b.address, b)
		at("new", nil)
		b.Drop(1)
		a.await(2, "refused")
		if s := w.call(t, a.address); s.exchangeGreetings(kindFrames, 2, 1).kind != kindRefused {
			t.Error("a caller was confirmed at the former address")
		}
	})
}
