package ports_test

import (
	"net"
	"testing"

	"github.com/gozkd/gozkd/server/internal/ports"
)

// listener records whether it was closed.
type listener struct {
	net.Listener
	at     net.TCPAddr
	closed bool
}

func (l *listener) Addr() net.Addr { return &l.at }
func (l *listener) Close() error   { l.closed = true; return nil }

// A port has one listener at a time: a new one closes the previous one, and a closed port takes
// none. The address stays.
func TestPort(t *testing.T) {
	var p ports.Port
	if p.Listener() != nil || p.Addr() != nil || p.Replace(nil) != true {
		t.Error("a port that was not opened has a listener")
	}
	var a, b, c listener
	if !p.Replace(&a) || p.Listener() != &a || p.Addr() != a.Addr() || a.closed {
		t.Error("the listener is another one")
	}
	if !p.Replace(nil) || p.Listener() != nil || !a.closed || p.Addr() != a.Addr() {
		t.Error("the listener was not closed, or its address is forgotten")
	}
	if !p.Replace(&b) || p.Addr() != b.Addr() || p.Close() != nil || !b.closed {
		t.Error("Close leaves a listener")
	}
	if p.Replace(&c) || p.Listener() == &c || c.closed || p.Addr() != b.Addr() {
		t.Error("a closed port took a listener")
	}
}
