package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// A server listens for others on each of its addresses, and no longer after Close.
func TestJoinedListener(t *testing.T) {
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
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
	for _, l := range listeners {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Errorf("%v still accepts: %v", l.Addr(), c.Close())
		}
	}
}

// Whoever asks whether strangers can reach a listener must see all its addresses: a member takes
// guests without a proof only if all are loopback addresses.
func TestJoinedListener_NamesAllAddresses(t *testing.T) {
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
	if got := j.Addr(); got.Network() != "tcp" || got.String() != strings.Join(want, serverlist.AddressSeparator) {
		t.Errorf("the address is %s %s, the listeners are at %v", got.Network(), got, want)
	}
}

// joined returns a joinedListener of listeners.
func joined(t *testing.T, listeners []net.Listener) *joinedListener {
	t.Helper()
	j := newJoinedListener()
	for _, l := range listeners {
		if err := j.add(l); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// An address is resolved as the net package does to listen on it, and no longer than the context.
func TestResolve(t *testing.T) {
	for _, address := range []string{"127.0.0.1:2888", "[::1]:2888", "localhost:2888", ":2888", "0.0.0.0:2888", "[::]:2888", "localhost", "localhost:many"} {
		want, wantErr := net.ResolveTCPAddr("tcp", address)
		got, err := resolve(t.Context(), address)
		if (err == nil) != (wantErr == nil) || err == nil && (got.Port != want.Port || !got.IP.Equal(want.IP)) {
			t.Errorf("%q: %v, %v, not %v, %v", address, got, err, want, wantErr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := resolve(ctx, "gozkd.invalid:2888"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v, %v", a, err)
	}
}
