package accept_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/tcpport"
)

// A server listens for others on each of its addresses, and no longer after Close.
func TestJoined(t *testing.T) {
	var listeners []net.Listener
	var ports []*tcpport.Port // which nobody else gets after Close
	for range 2 {
		port, l, err := tcpport.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer port.Release()
		listeners, ports = append(listeners, l), append(ports, port)
	}
	j := joined(t, listeners)
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
	for _, port := range ports {
		port.Hold()
		if c, err := net.Dial("tcp", port.Address()); err == nil {
			t.Errorf("%v still accepts: %v", port.Address(), c.Close())
		}
	}
}

// Whoever asks whether strangers can reach a listener must see all its addresses: a member takes
// guests without a proof only if all are loopback addresses.
func TestJoined_NamesAllAddresses(t *testing.T) {
	var listeners []net.Listener
	var want []string
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		listeners, want = append(listeners, l), append(want, l.Addr().String())
	}
	j := joined(t, listeners)
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := j.Addr(); got.Network() != "tcp" || got.String() != strings.Join(want, "|") {
		t.Errorf("the address is %s %s, the listeners are at %v", got.Network(), got, want)
	}
}

// joined returns a Joined of listeners.
func joined(t *testing.T, listeners []net.Listener) *accept.Joined {
	t.Helper()
	j := accept.NewJoined("|")
	for _, l := range listeners {
		if err := j.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	return j
}
