package memnet_test

import (
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// window is how many unread bytes a connection holds (M3).
const window = 256 << 10

// connect connects host a to a listener of host b.
func connect(t testing.TB, n *memnet.Network) (a, b net.Conn) {
	t.Helper()
	l, err := n.Listen("b:1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // once
	accepted := make(chan net.Conn, 1)
	go func() { // ends with the dial or the listener; awaited by the receive
		defer close(accepted)
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	if a, err = n.Dial(t.Context(), "a", "b:1"); err != nil {
		t.Fatal(err)
	}
	if b = <-accepted; b == nil {
		t.Fatal("not accepted")
	}
	t.Cleanup(func() { closeAll(a, b) })
	return a, b
}

// closeAll closes connections, some of which may be closed already.
func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
}

// receive reads and requires the given bytes.
func receive(t testing.TB, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, 2*window)
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != want {
		t.Fatalf("read %q, %v, want %q", b[:min(n, 100)], err, want)
	}
}

// took returns how long f runs.
func took(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}
