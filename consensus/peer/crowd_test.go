package peer

import (
	"context"
	"net"
	"net/netip"
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

// hosts is a listener whose connections come from the host that the test names.
type hosts struct {
	net.Listener
	host atomic.Pointer[string]
}

func (h *hosts) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return from{conn, *h.host.Load()}, nil
}

type from struct {
	net.Conn
	host string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.host + ":1"))
}

// onHosts lets a member be called from hosts.
func (w *world) onHosts(t *testing.T, change func(cfg *Config)) (a *member, come func(host string)) {
	l, address := w.listen(t, "")
	h := &hosts{Listener: l}
	a = w.start(t, 1, func(m *member, cfg *Config) {
		cfg.Listener, m.address = h, address
		change(cfg)
	})
	return a, func(host string) {
		synctest.Wait() // earlier connections are accepted
		h.host.Store(&host)
	}
}

// P9: questions about the connections of strangers do not make the member wait that they name.
func TestP9_QuestionsByHost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.start(t, 2)
		var hangs atomic.Bool
		a, come := w.onHosts(t, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if hangs.Load() {
					address = hanging
				}
				return w.dialHanging(ctx, address)
			}
			cfg.Peers = map[uint64]string{2: b.address}
		})
		hangs.Store(true)
		hello := (&greeting{kind: kindFrames, from: 2, to: 1}).append(nil)
		for _, host := range []string{"10.0.0.1", "10.0.0.2", "[2001:db8::1]"} {
			come(host)
			for range 50 {
				w.call(t, a.address).say(hello)
			}
		}
		come("10.0.0.9")
		hangs.Store(false)
		began := time.Now()
		b.SetPeers(map[uint64]string{1: a.address})
		b.await(1, "up")
		if took := time.Since(began); took > 0 {
			t.Errorf("the member needs %v to connect", took)
		}
		questions, _ := a.peerOf(2)
		if n := questions.Len(); n > 3*maxQuestionsPerHost {
			t.Errorf("%d questions at a time", n)
		}
		time.Sleep(2 * silenceTimeout)
		synctest.Wait()
		if n := questions.Len() + a.lobby.Len(); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// P9: a caller makes room for one of its own host, if that has most callers.
func TestP9_LobbyByHost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, come := w.onHosts(t, func(*Config) {})
		come("10.0.0.9")
		other := w.call(t, a.address)
		come("10.0.0.1")
		for range 2 * maxLobby {
			w.call(t, a.address)
		}
		synctest.Wait()
		visitors := a.lobby.Len()
		_ = other.Close()
		synctest.Wait()
		if left := a.lobby.Len(); visitors != maxLobby || left != maxLobby-1 {
			t.Errorf("%d visitors, and %d without that of the other host", visitors, left)
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
			m.judges = func(_ uint64, k bool) error {
				a.SetPeers(map[uint64]string{2: w.confirmer(t, 2)}) // meanwhile
				known = append(known, k)
				return nil
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
