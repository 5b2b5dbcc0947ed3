package server

import (
	"errors"
	"net"
	"testing"
)

// A server listens for others on each of its addresses, and no longer after Close.
func TestJoinListeners(t *testing.T) {
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	j := joinListeners(listeners)
	for _, l := range listeners {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := j.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("accepted %v, not %v", s.RemoteAddr(), c.LocalAddr())
		}
		if err := errors.Join(s.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Error(err)
	}
	if _, err := j.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for _, l := range listeners {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Errorf("%v still accepts: %v", l.Addr(), c.Close())
		}
	}
}
