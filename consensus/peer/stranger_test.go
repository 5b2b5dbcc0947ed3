package peer

import (
	"net"
	"testing"
)

// stranger is one end of a connection that the test drives by hand.
type stranger struct {
	net.Conn
	t  testing.TB
	in *frameReader
}

func newStranger(t testing.TB, conn net.Conn) *stranger {
	t.Cleanup(func() { _ = conn.Close() }) // most tests end with it broken
	return &stranger{Conn: conn, t: t, in: newFrameReader(conn, DefaultMaxFrame)}
}

// call connects to a member by hand.
func (w *world) call(t testing.TB, address string) *stranger {
	t.Helper()
	conn, err := w.dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return newStranger(t, conn)
}

// say writes bytes.
func (s *stranger) say(b []byte) {
	s.t.Helper()
	if _, err := s.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// exchangeGreetings sends a hello and returns the answer.
func (s *stranger) exchangeGreetings(kind uint32, from, to uint64) greeting {
	s.t.Helper()
	g := greeting{kind: kind, from: from, to: to, contents: []byte("stranger")}
	s.say(g.append(nil))
	return s.answer()
}

// answer reads a greeting.
func (s *stranger) answer() greeting {
	s.t.Helper()
	g, err := readGreeting(s.in.r)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// next reads the next frame that is no heartbeat.
func (s *stranger) next() (typ uint32, payload string, err error) {
	for {
		typ, payload, err := s.in.next(nil)
		if err != nil || typ != typeHeartbeat {
			return typ, string(payload), err
		}
	}
}

// ended reads until the other side closes the connection.
func (s *stranger) ended() {
	s.t.Helper()
	if typ, payload, err := s.next(); err == nil {
		s.t.Fatalf("not closed: frame of type %d, %q", typ, payload)
	}
}

// receptionist accepts connections without a Network, and answers each hello with the result of
// answer.
func (w *world) receptionist(t testing.TB) (address string, calls <-chan *stranger) {
	t.Helper()
	l, address := w.listen(t, "")
	ch := make(chan *stranger, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			ch <- newStranger(t, conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return address, ch
}

// accepted reads a hello and accepts it.
func (s *stranger) accepted() greeting {
	s.t.Helper()
	g := s.answer()
	answer := greeting{kind: kindAccepted, from: g.to, to: g.from, contents: []byte("stranger")}
	s.say(answer.append(nil))
	return g
}
