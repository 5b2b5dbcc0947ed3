package peer

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is the address of a machine that drops what is sent to it.
const hanging = "hanging"

// dialHanging is w.dial for a world with such a machine.
func (w *world) dialHanging(ctx context.Context, address string) (net.Conn, error) {
	if address == hanging {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return w.dial(ctx, address)
}

// P9: strangers that name a member whose machine drops packets do not keep the others out: a
// connection that must go takes the question about it with it.
func TestP9_QuestionsHang(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.start(t, 3)
		a := w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Dial, cfg.Peers = w.dialHanging, map[uint64]string{2: hanging, 3: b.address}
		})
		began := time.Now()
		hello := (&greeting{kind: kindFrames, from: 2, to: 1}).append(nil)
		for range 2 * maxIncoming {
			w.call(t, a.address).say(hello)
			synctest.Wait()
		}
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
		if took := time.Since(began); took > 0 {
			t.Errorf("a member needs %v to connect", took)
		}
		if got := a.Refused()["unreachable"]; got != 0 {
			t.Errorf("%d connections that had to go were refused", got)
		}
	})
}

// P8: callers that come while addresses are being set are not believed: the Handler learns that
// there was nobody to ask.
func TestP8_AddressesBeingSet(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var known []bool
		var a *member
		a = w.start(t, 1, func(m *member, _ *Config) {
			m.judges = func(_ uint64, k bool) {
				a.SetPeers(map[uint64]string{2: w.confirmer(t, 2)}) // meanwhile
				known = append(known, k)
			}
		})
		for range 2 {
			s := w.call(t, a.address)
			s.exchangeGreetings(kindFrames, 2, 1)
			_ = s.Close()
			synctest.Wait()
		}
		if len(known) != 2 || known[0] || !known[1] {
			t.Errorf("known %v, want false and true", known)
		}
	})
}

// P8: the peers of the Config are asked from the first connection on.
func TestP8_PeersBeforeTheFirstConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l, address := w.listen(t, "")
		said := make(chan greeting, 1)
		// Ends with the answer, awaited below.
		go func() { said <- w.call(t, address).exchangeGreetings(kindFrames, 2, 1) }()
		synctest.Wait() // it waits for the listener
		w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Listener = l
			cfg.Peers = map[uint64]string{2: w.asked(t, func(g greeting) greeting { return greeting{kind: kindDenied, from: 2, to: g.from} })}
		})
		if answer := <-said; answer.kind != kindRefused {
			t.Errorf("answer is %d %q", answer.kind, answer.contents)
		}
	})
}

// lingering notes SetLinger(0).
type lingering struct {
	net.Conn
	reset *atomic.Int32
}

func (l lingering) SetLinger(seconds int) error {
	if seconds == 0 {
		l.reset.Add(1)
	}
	return nil
}

// P9: a question leaves no port in TIME_WAIT.
func TestP9_QuestionsLeaveNoPort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var reset atomic.Int32
		a := w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := w.dial(ctx, address)
				if err != nil {
					return nil, err
				}
				return lingering{conn, &reset}, nil
			}
			cfg.Peers = map[uint64]string{2: w.confirmer(t, 2)}
		})
		for range 3 {
			s := w.call(t, a.address)
			s.exchangeGreetings(kindFrames, 2, 1)
			_ = s.Close()
		}
		synctest.Wait()
		if got := reset.Load(); got != 3 {
			t.Errorf("%d of 3 questions ended by a reset", got)
		}
	})
}
