package peer

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestThreeMembersTalk(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b, c := w.start(t, 1), w.start(t, 2), w.start(t, 3)
		know(a, b, c)
		for i := range 100 {
			for _, m := range []*member{a, b, c} {
				for _, to := range []uint64{1, 2, 3} {
					if sent := m.Send(to, fmt.Appendf(nil, "frame %d", i)); sent != (to != m.id) {
						t.Fatalf("Send from %d to %d is %v", m.id, to, sent)
					}
				}
			}
			if a.Send(9, []byte("stranger")) {
				t.Fatal("sent to a member that is no peer")
			}
		}
		next := make(map[string]int)
		for range 200 {
			got := <-b.frames
			from := got[:1]
			if want := fmt.Sprintf("%s: frame %d", from, next[from]); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			next[from]++
		}
	})
}

func TestStatus(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		a.SetPeers(map[uint64]string{1: a.address, 2: b.address, 7: "", 3: "nowhere.invalid:1"})
		eventually(t, "member 3 has an error", func() bool { return a.status(3).LastError != nil })
		got := a.Status()
		got[0].IncomingAt, got[1].LastError = nil, nil
		want := []Status{
			{ID: 2, Address: b.address, Connected: true, Incoming: true},
			{ID: 3, Address: "nowhere.invalid:1"},
		}
		if !slices.Equal(got, want) {
			t.Fatalf("status is %+v, want %+v", got, want)
		}
	})
}

// A member that returns is reconnected at once, because it dials first, however long it was away.
func TestReconnect_AfterRestart(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		a.await(2, "down")
		a.await(2, "refused")
		if a.Send(2, []byte("into the void")) {
			t.Error("Send is true without a connection")
		}
		if w.pipes {
			time.Sleep(time.Hour) // of virtual time
		}
		began := time.Now()
		b2 := w.start(t, 2, func(m *member, _ *Config) { m.address = b.address })
		b2.SetPeers(map[uint64]string{1: a.address})
		a.await(2, "up")
		b2.await(1, "up")
		if took := time.Since(began); w.pipes && took > 0 {
			t.Errorf("it took %v", took)
		}
		a.Send(2, []byte("welcome back"))
		b2.expect("1: welcome back")
	})
}

// A member that does not dial is reconnected within the longest wait.
func TestReconnect_ByTrying(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		a.SetPeers(map[uint64]string{2: "pipe-x"})
		time.Sleep(time.Hour)
		w.start(t, 2, func(m *member, _ *Config) { m.address = "pipe-x" })
		began := time.Now()
		a.await(2, "up")
		if took := time.Since(began); took > longestWait {
			t.Errorf("it took %v", took)
		}
	})
}

func TestReconnect_ChangedAddress(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		moved := w.start(t, 2)
		a.SetPeers(map[uint64]string{2: moved.address})
		a.await(2, "down")
		a.await(2, "up")
		a.Send(2, []byte("to the new place"))
		moved.expect("1: to the new place")
		if got := a.status(2); got.Address != moved.address || !got.Connected {
			t.Errorf("status is %+v", got)
		}
		a.SetPeers(map[uint64]string{2: moved.address}) // no change: nothing happens
		a.Send(2, []byte("again"))
		moved.expect("1: again")
	})
}

func TestDroppedPeer(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b, c := w.start(t, 1), w.start(t, 2), w.start(t, 3)
		know(a, b, c)
		for range 20 { // dropped and named again, also before the old goroutine noticed
			a.SetPeers(map[uint64]string{3: c.address})
			a.SetPeers(map[uint64]string{2: b.address, 3: c.address})
		}
		a.await(2, "down")
		// A queued frame may be lost with a connection that is about to be dropped.
		eventually(t, "2 hears of 1 again", func() bool {
			a.Send(2, []byte("hello again"))
			return len(b.frames) > 0
		})
		b.expect("1: hello again")
		a.SetPeers(map[uint64]string{3: c.address})
		eventually(t, "2 is dropped", func() bool { return !a.Send(2, nil) })
		if got := a.Status(); len(got) != 1 || got[0].ID != 3 || !got[0].Connected {
			t.Errorf("status is %+v", got)
		}
	})
}

// P7: Up and Down alternate, and each Up has its Down before Close returns.
func TestP7_UpAndDown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		for range 5 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			a.await(2, "refused")
			b = w.start(t, 2, func(m *member, _ *Config) { m.address = b.address })
			b.SetPeers(map[uint64]string{1: a.address})
			b.await(1, "up")
			a.await(2, "up")
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*member{a, b} {
			states := m.statesOf(3 - m.id)
			close(states) // nothing may come any more: it would panic
			last := "up"
			for s := range states {
				if s == "up" && last == "up" {
					t.Errorf("member %d: up follows up", m.id)
				}
				last = s
			}
			if last == "up" && m == b {
				t.Errorf("member %d: no down after the last up", m.id)
			}
		}
		a.SetPeers(map[uint64]string{2: b.address})
		if a.Send(2, nil) || len(a.Status()) != 0 {
			t.Error("a closed network has peers")
		}
		if err := a.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// P7: Close waits for running calls of the Handler.
func TestP7_CloseAwaitsTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		entered, unregisterIncoming := make(chan struct{}), make(chan struct{})
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.receive = func(uint64, []byte) { close(entered); <-unregisterIncoming }
		})
		know(a, b)
		a.Send(2, []byte("x"))
		<-entered
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatal("closed while Receive runs", err)
		default:
		}
		close(unregisterIncoming)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

// P7: Close ends a dial without an answer, a hello without an answer, and a connection without a
// hello.
func TestP7_CloseEndsWhatHangs(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		silent, calls := w.receptionist(t)
		a := w.start(t, 1)
		a.SetPeers(map[uint64]string{2: silent})
		<-calls // and no answer
		s := w.call(t, a.address)
		s.say([]byte(magic))
		const limit = silenceTimeout / 2
		began := time.Now()
		late := func() bool { return time.Since(began) > limit }
		if !w.pipes {
			soon := watchdog.Context(t, limit)
			late = func() bool { return soon.Err() != nil }
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if late() {
			t.Errorf("Close took %v", time.Since(began))
		}
		s.ended()
	})
}

// P9: with few file descriptors few connections are accepted, and members still find room.
func TestP9_FewConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		few := func(_ *member, c *Config) { c.MaxIncoming = 16 }
		a := w.start(t, 1, few)
		for range 100 {
			w.call(t, a.address)
		}
		synctest.Wait()
		a.mu.Lock()
		accepted := a.accepted
		a.mu.Unlock()
		if got := a.lobby.Len(); got != 4 || accepted != 4 {
			t.Errorf("%d connections of strangers wait, %d are open, want 4", got, accepted)
		}
		b := w.start(t, 2, few)
		know(a, b)
	})
}

// P9: strangers that say nothing do not keep members out: those that came first must go.
func TestP9_TooManyConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		first := w.call(t, a.address)
		for range 2 * maxIncoming {
			w.call(t, a.address)
		}
		synctest.Wait()
		first.ended()
		if got := a.lobby.Len(); got != maxLobby {
			t.Errorf("%d connections wait, want %d", got, maxLobby)
		}
		b := w.start(t, 2)
		began := time.Now()
		know(a, b)
		if took := time.Since(began); took > 0 {
			t.Errorf("a member needs %v to connect", took)
		}
		if got := a.log.Count("have not proved who they are"); got != 1 {
			t.Errorf("%d lines, want 1:\n%s", got, a.log)
		}
		if got := a.Refused()["crowded"]; got < maxIncoming {
			t.Errorf("%d connections had to go", got)
		}
		time.Sleep(silenceTimeout) // those that said nothing are gone
		synctest.Wait()
		if got := a.lobby.Len(); got != 0 {
			t.Errorf("%d connections wait for nothing", got)
		}
	})
}

// brokenListener fails a few times, like a listener without free file descriptors.
type brokenListener struct {
	net.Listener
	failures atomic.Int32
}

func (l *brokenListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, errors.New("out of something")
	}
	return l.Listener.Accept()
}

func TestAcceptGoesOnAfterErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l, address := w.listen(t, "")
		broken := &brokenListener{Listener: l}
		broken.failures.Store(10)
		began := time.Now()
		a := w.start(t, 1, func(m *member, cfg *Config) { cfg.Listener, m.address = broken, address })
		b := w.start(t, 2)
		know(a, b)
		if took := time.Since(began); took < time.Second || took > 5*time.Second {
			t.Errorf("10 errors took %v: the pause is missing or too long", took)
		}
	})
}

func TestNew_Config(t *testing.T) {
	_, err := New(Config{MaxFrame: 1<<30 + 1, QueueBytes: -1})
	for _, want := range []string{"Self", "Listener", "Handler", "MaxFrame", "QueueBytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}
