package peer

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/pipenet"
)

// dialSilent makes a member's dials of the address "silent" hang. At "mute", nothing is answered.
// At an address of slow, a connection takes that long.
func (w *world) dialSilent(_ *member, cfg *Config) {
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if address == "silent" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if address == "mute" {
			conn, other := net.Pipe()
			go io.Copy(io.Discard, other) //nolint:errcheck // until conn is closed
			return conn, nil
		}
		if wait, there, slow := strings.Cut(address, " to "); slow {
			d, err := time.ParseDuration(wait)
			if err != nil {
				return nil, err
			}
			select {
			case <-time.After(d):
				address = there
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return w.dial(ctx, address)
	}
}

func slow(takes time.Duration, address string) string { return takes.String() + " to " + address }

// A peer with several addresses is reached at the first that answers. One that does not answer
// costs AddressPatience.
func TestDial_SeveralAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		b := w.start(t, 2, w.dialSilent, func(_ *member, cfg *Config) { cfg.AddressPatience = 300 * time.Millisecond })
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
		patient := func(_ *member, cfg *Config) { cfg.AddressPatience = time.Hour }
		a, b := w.start(t, 1, w.dialSilent, patient), w.start(t, 2, w.dialSilent, patient)
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

// A peer is gone only if it refuses at all of its own addresses: it may be at a silent one.
func TestSetPeers_FormerAddressSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, w.dialSilent)
		for _, addresses := range [][2]string{{"silent", "nowhere"}, {"nowhere", "silent"}} {
			for _, address := range addresses {
				a.SetPeers(map[uint64]string{2: address})
			}
			time.Sleep(time.Minute)
			for len(a.statesOf(2)) > 0 { // some may be from before the peer moved
				<-a.statesOf(2)
			}
			time.Sleep(time.Minute)
			if len(a.statesOf(2)) == 0 {
				t.Fatalf("%v: it is not tried", addresses)
			}
			for len(a.statesOf(2)) > 0 {
				if got := <-a.statesOf(2); got != "down" {
					t.Errorf("a peer that was at %s and is to be at %s is %s", addresses[0], addresses[1], got)
				}
			}
			a.SetPeers(nil)
			time.Sleep(time.Minute)
		}
	})
}

// A peer that is not at its own address is reached, asked and let in where it may be, too, within
// a few seconds, also if nothing answers at its own: after one at least, since it may only be
// starting again, and at once if its own belongs to somebody else.
func TestSetFurther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, another := w.start(t, 1, w.dialSilent), w.start(t, 2), w.start(t, 3)
		for _, own := range []string{"nowhere", "silent", "mute", another.address} {
			for _, further := range [][]string{{b.address}, {"silent", b.address}} {
				a.SetFurther(map[uint64][]string{2: further})
				a.SetPeers(map[uint64]string{2: own})
				b.SetPeers(map[uint64]string{1: a.address})
				for range 3 {
					began := time.Now()
					if own == "nowhere" {
						a.await(2, "refused") // by its own address
					}
					a.await(2, "up")
					b.await(1, "up") // as a asks b there
					took := time.Since(began)
					if took < furtherAfter/2 && own != another.address || took > 8*time.Second {
						t.Errorf("own address %s, further addresses %v: reached after %v", own, further, took)
					}
					time.Sleep(time.Minute)
					if n := len(a.statesOf(2)) + len(b.statesOf(1)); n > 0 {
						t.Fatalf("own address %s: %d connections ended or were made", own, n)
					}
					a.Drop(2)
					a.await(2, "down")
					b.await(1, "down")
				}
				a.SetPeers(nil)
				b.SetPeers(nil)
				time.Sleep(time.Minute)
				for m, id := range map[*member]uint64{a: 2, b: 1} {
					for len(m.statesOf(id)) > 0 {
						<-m.statesOf(id)
					}
				}
			}
		}
	})
}

// Each of a peer's own addresses has its time, also if there are further ones: on a slow network
// the peer is found at its own line, at whichever of its addresses it listens.
func TestSetFurther_SeveralSlowAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1, w.dialSilent), w.start(t, 2)
		b.SetPeers(map[uint64]string{1: a.address})
		for _, own := range []string{"silent|", "silent|silent|"} {
			for _, further := range []string{"silent", "silent|mute"} {
				a.SetFurther(map[uint64][]string{2: {further}})
				a.SetPeers(map[uint64]string{2: own + slow(900*time.Millisecond, b.address)})
				a.await(2, "up")
				a.SetPeers(nil)
				a.await(2, "down")
			}
		}
	})
}

// A member that is asked whether a connection is its own has all of the time to answer, if there is
// no other address at which to ask.
func TestConfirm_SlowNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1, w.dialSilent), w.start(t, 2)
		a.SetPeers(map[uint64]string{2: slow(confirmTimeout*2/3, b.address)})
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
	})
}

// A peer whose connection has ended may just be starting again: it is not tried at a further
// address within a second.
func TestSetFurther_NotAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var tried atomic.Int32
		a, b := w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == "further" {
					tried.Add(1)
				}
				return w.dial(ctx, address)
			}
		}), w.start(t, 2)
		b.SetPeers(map[uint64]string{1: a.address})
		a.SetFurther(map[uint64][]string{2: {"further"}})
		a.SetPeers(map[uint64]string{2: b.address})
		a.await(2, "up")
		time.Sleep(time.Minute)
		before := tried.Load()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(furtherAfter - time.Millisecond)
		if tried.Load() != before {
			t.Error("a further address is tried at once")
		}
		time.Sleep(4 * furtherAfter)
		if tried.Load() == before {
			t.Error("no further address is tried")
		}
	})
}

// Further addresses that change end no connection. Those of before do not count any longer. Where
// nobody answers they keep nobody waiting, and do not decide whether the peer is gone.
func TestSetFurther_Nobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1, w.dialSilent), w.start(t, 2)
		b.SetPeers(map[uint64]string{1: a.address})
		a.SetFurther(map[uint64][]string{2: {b.address}})
		a.SetPeers(map[uint64]string{2: "nowhere"})
		a.await(2, "up")
		b.await(1, "up")
		a.SetFurther(map[uint64][]string{2: {"silent", "mute"}})
		time.Sleep(time.Minute)
		if n := len(a.statesOf(2)) + len(b.statesOf(1)); n > 0 {
			t.Fatalf("%d changes of the connections as the further addresses change", n)
		}
		b.Drop(1)
		b.await(1, "down")
		a.await(2, "down")
		if s := w.call(t, a.address); s.exchangeGreetings(kindFrames, 2, 1).kind != kindRefused {
			t.Error("a caller was confirmed at what is no further address any longer")
		}
		connected := func(want bool) (after time.Duration) {
			began := time.Now()
			for a.status(2).Connected != want && time.Since(began) < time.Minute {
				time.Sleep(time.Millisecond)
			}
			return time.Since(began)
		}
		for range 20 {
			time.Sleep(time.Duration(1+rand.N(10_000)) * time.Millisecond)
			w.mu.Lock()
			w.listeners["nowhere"] = b.cfg.Listener.(*pipenet.Listener)
			w.mu.Unlock()
			if took := connected(true); took > 3*time.Second { // a dial or a hello, and a wait
				t.Fatalf("back after %v", took)
			}
			w.mu.Lock()
			delete(w.listeners, "nowhere")
			w.mu.Unlock()
			a.Drop(2)
			connected(false)
		}
		for own, want := range map[string]string{"nowhere": "refused", "silent": "down"} { // it may be there
			a.SetPeers(nil)
			time.Sleep(time.Minute)
			for len(a.statesOf(2)) > 0 {
				<-a.statesOf(2) // of before
			}
			a.SetFurther(map[uint64][]string{2: {"nowhere", "silent"}})
			a.SetPeers(map[uint64]string{2: own})
			time.Sleep(time.Minute)
			for range len(a.statesOf(2)) {
				if got := <-a.statesOf(2); got != want {
					t.Errorf("a peer whose own address is %s is %s", own, got)
				}
			}
		}
	})
}

// A server of another ensemble with the peer's id answers at the peer's new address: the connection
// at the former one is not given up for it again and again.
func TestSetPeers_AnotherWithTheID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		another := w.start(t, 2, func(m *member, _ *Config) {
			m.judges = func(uint64, bool) error { return errors.New("another ensemble") }
		})
		a.SetPeers(map[uint64]string{2: another.address})
		time.Sleep(10 * time.Minute)
		if n := len(a.statesOf(2)); n == 0 || n > 400 || !a.status(2).Connected { // two for each trial
			t.Errorf("%d changes of the connection: %+v", n, a.status(2))
		}
	})
}
