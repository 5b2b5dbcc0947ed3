package faultproxy

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// queue is a listener that hands out connections when they may come, each with a pause after its
// deadline is set.
type queue struct {
	net.Listener
	may chan struct{}
}

func (q queue) Accept() (net.Conn, error) {
	<-q.may
	nc, err := q.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slow{nc.(*net.TCPConn)}, nil
}

type slow struct{ *net.TCPConn }

func (s slow) SetReadDeadline(t time.Time) error {
	defer time.Sleep(10 * probeTime)
	return s.TCPConn.SetReadDeadline(t)
}

// On a machine that lets the gate wait, connections may be taken from the system's queue after the
// cut, and the look at a connection may take a while.
func TestCut_DropsWhoGaveUpInTheQueue(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := queue{l, make(chan struct{})}
	w := newWorld(t, q, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	w.gate.Cut(true)
	gone := w.open()
	gone.send(connectFrame(77))
	_ = gone.nc.Close()
	live := w.open()
	live.send(connectFrame(77))
	w.gate.Cut(false)
	close(q.may)
	live.expect(welcomeFrame(77))
	if n := len(w.conns); n != 1 && runtime.GOOS == "linux" { // others do not tell at once who is gone
		t.Errorf("the server got %d connections, want 1", n)
	}
}
