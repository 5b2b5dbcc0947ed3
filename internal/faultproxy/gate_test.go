package faultproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
)

func (w *world) expectSessions(want ...int64) {
	w.t.Helper()
	if got := w.gate.Sessions(); !slices.Equal(got, want) {
		w.t.Errorf("Sessions: %x, want %x", got, want)
	}
}

func TestSessions(t *testing.T) {
	w := tcpWorld(t)
	w.expectSessions()
	idle := w.open() // has sent nothing yet
	one, id1 := w.connect()
	two, id2 := w.connect()
	w.expectSessions(min(id1, id2), max(id1, id2))
	w.gate.Cut(true)
	w.expectSessions()
	w.gate.Cut(false)
	w.expectSessions(min(id1, id2), max(id1, id2))
	one.send(requestFrame(9, proto.OpCloseSession, nil))
	one.expect(replyFrame(9, 109, proto.OK, nil))
	w.expectSessions(id2)
	_ = two.nc.Close()
	w.expectGot(requestFrame(9, proto.OpCloseSession, nil))
	w.expectGot(nil)
	w.expectGot(nil)
	w.expectSessions()
	idle.send(frame((&proto.ConnectRequest{SessionID: 5, Passwd: make([]byte, 16)}).Append(nil)))
	idle.expect(welcomeFrame(5))
	w.expectSessions(5)
}

// A connection that is closed for either side has no session, whatever the server says later.
func TestSessions_OfTheClosed(t *testing.T) {
	for name, end := range map[string]func(c *conn) error{
		"server": (*conn).Close,
		"client": func(c *conn) error { _, err := c.Read(make([]byte, 1)); return err },
	} {
		g := NewGate(nil, new(Rules))
		c := newConn(g, &script{})
		g.conns[c] = struct{}{}
		Attach(c, 5)
		if ids := g.Sessions(); !slices.Equal(ids, []int64{5}) {
			t.Errorf("%s: Sessions: %x before the end", name, ids)
		}
		if err := end(c); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if name == "server" {
			Attach(c, 5)
		}
		if ids := g.Sessions(); len(ids) != 0 {
			t.Errorf("%s: Sessions: %x after the end", name, ids)
		}
	}
}

func TestCloseConns(t *testing.T) {
	w := tcpWorld(t)
	one, _ := w.connect()
	idle := w.open()
	<-w.conns
	<-w.conns
	w.gate.CloseConns()
	for _, c := range []*client{one, idle} {
		var b [1]byte
		if _, err := c.nc.Read(b[:]); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read: %v", err)
		}
	}
	w.expectGot(nil)
	w.expectGot(nil)
	w.connect() // the gate keeps listening
}

func TestCloseConn(t *testing.T) {
	w := tcpWorld(t)
	one, id1 := w.connect()
	two, id2 := w.connect()
	if w.gate.CloseConn(99) {
		t.Error("closed the connection of a session that is not there")
	}
	if !w.gate.CloseConn(id1) || w.gate.CloseConn(id1) {
		t.Error("CloseConn: want true, and then false")
	}
	one.expectEnd()
	two.send(requestFrame(1, proto.OpPing, nil))
	two.expect(replyFrame(proto.XidPing, 101, proto.OK, nil))
	w.expectSessions(id2)
}

// During a cut nothing passes; afterwards everything does.
func TestCut(t *testing.T) {
	w := tcpWorld(t)
	c, _ := w.connect()
	server := <-w.conns
	w.gate.Cut(true)
	w.gate.Cut(true)
	ping := requestFrame(1, proto.OpPing, nil)
	c.send(ping)
	event := replyFrame(proto.XidEvent, 1, proto.OK, []byte("event"))
	wrote := make(chan error, 1)
	go func() { _, err := server.Write(event); wrote <- err }() // awaited below
	late := w.open()
	late.send(connectFrame(0))
	c.expectSilence()
	late.expectSilence()
	w.expectGotNothing()
	w.gate.Cut(false)
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	got := [][]byte{c.recv(), c.recv()}
	slices.SortFunc(got, func(a, b []byte) int { return len(b) - len(a) }) // in either order
	if !slices.Equal(got[0], event) || !slices.Equal(got[1], replyFrame(proto.XidPing, 101, proto.OK, nil)) {
		t.Errorf("got %x", got)
	}
	late.recv()
	w.expectGot(ping)
}

// Connections that their clients close during a cut do not reach the server, however they are
// closed.
func TestCut_DropsWhoGaveUp(t *testing.T) {
	w := tcpWorld(t)
	w.gate.Cut(true)
	for i := range 5 {
		c := w.open()
		if i > 0 {
			c.send(connectFrame(77))
		}
		if i == 4 {
			_ = c.nc.(*net.TCPConn).SetLinger(0)
		}
		_ = c.nc.Close()
	}
	live, silent := w.open(), w.open()
	live.send(connectFrame(77))
	live.expectSilence()
	w.gate.Cut(false)
	live.expect(welcomeFrame(77))
	silent.send(connectFrame(78))
	silent.expect(welcomeFrame(78))
	if n := len(w.conns); n != 2 {
		t.Errorf("the server got %d connections, want 2", n)
	}
}

func TestCut_InABubble(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, id := w.connect()
		_ = c.nc.SetDeadline(time.Time{})
		w.gate.Cut(true)
		go c.send(requestFrame(1, proto.OpPing, nil)) // a pipe accepts it when the server reads
		time.Sleep(time.Hour)
		w.expectGotNothing()
		w.expectSessions()
		gone := w.open()
		_ = gone.nc.Close()
		late := w.open()
		_ = late.nc.SetDeadline(time.Time{})
		go late.send(connectFrame(0)) // as above
		time.Sleep(time.Hour)
		w.gate.Cut(false)
		late.recv()
		c.expect(replyFrame(proto.XidPing, 101, proto.OK, nil))
		if got := w.gate.Sessions(); len(got) != 2 || got[0] != id {
			t.Errorf("Sessions: %x", got)
		}
		if n := len(w.conns); n != 2 {
			t.Errorf("the server got %d connections, want 2", n)
		}
	})
}

// A cut does not prevent gate and server from closing.
func TestCut_Closing(t *testing.T) {
	w := tcpWorld(t)
	one, _ := w.connect()
	two, _ := w.connect()
	w.gate.Cut(true)
	late := w.open()
	w.gate.CloseConns()
	one.expectEnd()
	two.expectEnd()
	w.expectGot(nil)
	w.expectGot(nil)
	if err := w.gate.Close(); err != nil {
		t.Error(err)
	}
	<-w.ended
	late.expectEnd()
	if _, err := w.gate.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if err := w.gate.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close again: %v", err)
	}
}

// Connections held by a cut can be broken, and are closed with the gate.
func TestCut_ClosingWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.gate.Cut(true)
		broken := w.open()
		synctest.Wait()
		w.gate.CloseConns()
		broken.expectEnd()
		left := w.open()
		synctest.Wait()
		if err := w.gate.Close(); err != nil {
			t.Error(err)
		}
		left.expectEnd()
		<-w.ended
		if n := len(w.conns); n != 0 {
			t.Errorf("the server got %d connections", n)
		}
	})
}

// endless is a listener that always has another client.
type endless struct{ closed chan struct{} }

func (e endless) Accept() (net.Conn, error) {
	select {
	case <-e.closed:
		return nil, net.ErrClosed
	default:
		return &script{}, nil
	}
}

func (e endless) Close() error   { close(e.closed); return nil }
func (e endless) Addr() net.Addr { return nil }

// A long cut holds a bounded number of connections, and none of those accepted before.
func TestCut_BoundsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(endless{make(chan struct{})}, new(Rules))
		if _, err := g.Accept(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(g.arrived); n != 1 {
			t.Errorf("%d connections were taken ahead", n)
		}
		g.Cut(true)
		synctest.Wait()
		if n := len(g.arrived); n != maxArrived {
			t.Errorf("%d connections wait, want %d", n, maxArrived)
		}
		if !g.wasCut {
			t.Fatal("none is looked at for whether its client is still there")
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A gate that never accepted can be closed.
func TestClose_BeforeAccept(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(l, new(Rules))
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

// A deadline or Close ends a Read or Write that a cut or delay holds, without losing a byte.
func TestDeadlines(t *testing.T) {
	for name, hold := range map[string]func(w *world){
		"cut":   func(w *world) { w.gate.Cut(true) },
		"delay": func(w *world) { w.arm(Fault{Kind: Delay, Op: "ping", Delay: 24 * time.Hour}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, inner := net.Pipe()
				w := &world{t: t}
				w.gate = NewGate(nil, &w.rules)
				c := newConn(w.gate, inner)
				defer func() { _ = client.Close() }()
				ping := requestFrame(1, proto.OpPing, nil)
				got := make([]byte, 100)
				go func() { _, _ = client.Write(connectFrame(0)) }() // read below
				if n, err := c.Read(got); n != len(connectFrame(0)) || err != nil {
					t.Fatal(n, err)
				}
				hold(w)
				go func() { _, _ = client.Write(ping) }() // read below
				expect := func(d time.Duration, want error) {
					t.Helper()
					at := time.Now()
					n, err := c.Read(got)
					if n != 0 || err != want || time.Since(at) != d { //nolint:errorlint // the contract promises exactly this error
						t.Errorf("Read: %d, %v after %v; want %v after %v", n, err, time.Since(at), want, d)
					}
				}
				_ = c.SetReadDeadline(time.Now().Add(time.Hour))
				expect(time.Hour, os.ErrDeadlineExceeded)
				expect(0, os.ErrDeadlineExceeded)
				_ = c.SetDeadline(time.Now().Add(time.Hour))
				time.AfterFunc(time.Minute, func() { _ = c.SetDeadline(time.Now().Add(time.Minute)) }) // an earlier deadline
				expect(2*time.Minute, os.ErrDeadlineExceeded)
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				time.AfterFunc(30*time.Second, func() { _ = c.SetReadDeadline(time.Time{}) }) // no deadline
				if name == "cut" {
					time.AfterFunc(time.Hour, func() { w.gate.Cut(false) })
				}
				at := time.Now()
				if n, err := c.Read(got); err != nil || !slices.Equal(got[:n], ping) {
					t.Fatalf("Read: %x, %v", got[:n], err)
				}
				if took := time.Since(at); took < time.Hour {
					t.Errorf("read after %v", took)
				}
			})
		})
	}
}

// Bytes that arrive during a cut are held also for a Read that began before it.
func TestCut_UnderARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, inner := net.Pipe()
		g := NewGate(nil, new(Rules))
		c := newConn(g, inner)
		at := time.Now()
		done := make(chan struct{})
		go func() { // awaited below
			defer close(done)
			p := make([]byte, 100)
			if n, err := c.Read(p); err != nil || string(p[:n]) != "ruok" || time.Since(at) != time.Hour {
				t.Errorf("Read: %q, %v after %v", p[:n], err, time.Since(at))
			}
			if _, err := c.Read(p); !errors.Is(err, io.EOF) {
				t.Errorf("Read: %v", err)
			}
		}()
		synctest.Wait()
		g.Cut(true)
		if _, err := client.Write([]byte("ruok")); err != nil {
			t.Error(err)
		}
		_ = client.Close()
		time.Sleep(time.Hour)
		g.Cut(false)
		<-done
		if _, err := c.Write([]byte{1, 2, 3, 4, 5}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write to who is gone: %v", err)
		}
	})
}

func TestDeadlines_WriteDuringCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, inner := net.Pipe()
		defer func() { _ = client.Close() }()
		g := NewGate(nil, new(Rules))
		c := newConn(g, inner)
		g.Cut(true)
		_ = c.SetWriteDeadline(time.Now().Add(time.Hour))
		at := time.Now()
		if n, err := c.Write([]byte("x")); n != 0 || err != os.ErrDeadlineExceeded || time.Since(at) != time.Hour { //nolint:errorlint // the contract promises exactly this error
			t.Errorf("Write: %d, %v after %v", n, err, time.Since(at))
		}
		_ = c.SetWriteDeadline(time.Time{})
		time.AfterFunc(time.Hour, func() { _ = c.Close() })
		if n, err := c.Write([]byte("x")); n != 0 || err != net.ErrClosed { //nolint:errorlint // as above
			t.Errorf("Write: %d, %v", n, err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != net.ErrClosed { //nolint:errorlint // as above
			t.Errorf("Read after Close: %d, %v", n, err)
		}
		if err := c.Close(); err != net.ErrClosed { //nolint:errorlint // as above
			t.Errorf("Close again: %v", err)
		}
	})
}

func TestDelay_CloseEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.arm(Fault{Kind: Delay, Op: "ping", Delay: time.Hour})
		c, _ := w.connect()
		c.send(requestFrame(1, proto.OpPing, nil))
		<-a.Done()
		at := time.Now()
		w.gate.CloseConns()
		w.expectGot(nil)
		if took := time.Since(at); took != 0 {
			t.Errorf("after %v", took)
		}
	})
}

// The server sees a plain net.Conn, since a system call on the socket would bypass the gate.
func TestConn_IsPlain(t *testing.T) {
	w := tcpWorld(t)
	c, _ := w.connect()
	server := <-w.conns
	if _, ok := server.(syscall.Conn); ok {
		t.Error("it is a syscall.Conn")
	}
	if server.RemoteAddr().String() != c.nc.LocalAddr().String() || server.LocalAddr().String() != w.gate.Addr().String() {
		t.Errorf("addresses %v and %v", server.LocalAddr(), server.RemoteAddr())
	}
}

// failing is a listener whose first Accept fails.
type failing struct {
	net.Listener
	errs chan error
}

func (f failing) Accept() (net.Conn, error) {
	select {
	case err := <-f.errs:
		return nil, err
	default:
		return f.Listener.Accept()
	}
}

func TestAccept_PassesErrorsOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := failing{l, make(chan error, 2)}
	f.errs <- syscall.EMFILE
	f.errs <- syscall.ENFILE
	g := NewGate(f, new(Rules))
	for _, want := range []error{syscall.EMFILE, syscall.ENFILE} {
		if _, err := g.Accept(); !errors.Is(err, want) {
			t.Errorf("Accept: %v, want %v", err, want)
		}
	}
	nc, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // not through the gate
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	_ = c.Close()
	_ = g.Close() // says that the listener is closed already
}
