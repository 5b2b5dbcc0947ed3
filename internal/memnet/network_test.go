package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// A cut link holds bytes, and time passes while a reader waits for them.
func TestNetwork_Cut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(time.Millisecond)
		a, b := connect(t, n)
		send(t, a, "under way ")
		n.Cut("a", "b", true)
		send(t, a, "held")
		send(t, b, "the other direction works")
		receive(t, a, "the other direction works")
		closeAll(a)
		time.AfterFunc(time.Hour, func() { n.Cut("a", "b", false) })
		if took := took(func() { receive(t, b, "under way held") }); took != time.Hour {
			t.Errorf("took %v", took)
		}
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

func TestNetwork_CutStopsWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		a, b := connect(t, n)
		n.Cut("a", "b", true)
		closeAll(b) // which a must not learn from its writes
		time.AfterFunc(time.Hour, func() { n.Cut("a", "b", false) })
		if took := took(func() {
			if k, err := a.Write(make([]byte, window+1)); k != window || !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%d, %v", k, err)
			}
		}); took != time.Hour {
			t.Errorf("took %v", took)
		}
	})
}

// Bytes stay in order although later bytes have less delay, or none.
func TestNetwork_Delay(t *testing.T) {
	for _, latency := range []time.Duration{0, time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) { testDelay(t, latency) })
	}
}

func testDelay(t *testing.T, latency time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(latency)
		a, b := connect(t, n)
		begun := time.Now()
		at := func(want time.Duration, text string) {
			t.Helper()
			receive(t, b, text)
			if got := time.Since(begun); got != want {
				t.Errorf("%q arrived after %v, want %v", text, got, want)
			}
		}
		send(t, a, "soon")
		n.Delay("a", "b", time.Second)
		send(t, a, "late")
		at(latency, "soon")
		n.Delay("a", "b", 0)
		send(t, a, ", as all behind it")
		closeAll(a)
		at(time.Second+latency, "late, as all behind it")
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begun) != time.Second+latency {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// The end of a stream takes as long as bytes do.
func TestNetwork_DelaysClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(time.Second)
		a, b := connect(t, n)
		closeAll(a)
		if took := took(func() {
			if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestNetwork_Tear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		torn bool
	}{
		{"a", "b", true}, {"b", "a", true}, {"a", "", true}, {"b", "", true},
		{"a", "c", false}, {"c", "b", false}, {"c", "", false},
	} {
		t.Run(c.a+"-"+c.b, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(0)
				a, b := connect(t, n)
				send(t, a, "lost")
				// A torn connection breaks all the same. Cut first: otherwise the read below may
				// get a byte that the write below has sent.
				n.Cut("b", "a", true)
				results := make(chan error, 3)
				go func() { // ends by Tear or Close; awaited by the receives
					_, err := a.Read(make([]byte, 1))
					results <- err
				}()
				go func() { // likewise
					_, err := b.Write(make([]byte, window+1))
					results <- err
				}()
				synctest.Wait()
				n.Tear(c.a, c.b)
				synctest.Wait()
				if !c.torn {
					receive(t, b, "lost")
					closeAll(a, b)
					for range 2 {
						if err := <-results; err == nil {
							t.Error("a read or write of a closed connection succeeded")
						}
					}
					return
				}
				_, err := b.Read(make([]byte, 1))
				results <- err
				for range 3 {
					if err := <-results; !errors.Is(err, syscall.ECONNRESET) {
						t.Error(err)
					}
				}
				for _, c := range []net.Conn{a, b} {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestNetwork_Listen(t *testing.T) {
	n := memnet.New(0)
	for _, bad := range []string{"", "h", "h:1:2"} {
		if _, err := n.Listen(bad); err == nil {
			t.Errorf("listens on %q", bad)
		}
		if _, err := n.Dial(t.Context(), "a", bad); err == nil {
			t.Errorf("dials %q", bad)
		}
	}
	l, err := n.Listen("h:1")
	if err != nil {
		t.Fatal(err)
	}
	if l.Addr().String() != "h:1" || l.Addr().Network() != "memory" {
		t.Error(l.Addr())
	}
	if _, err := n.Listen("h:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	for i, want := range []error{nil, net.ErrClosed} {
		if err := l.Close(); !errors.Is(err, want) {
			t.Errorf("close %d: %v", i, err)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	again, err := n.Listen("h:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) { // and does nothing to who listens now
		t.Error(err)
	}
	if _, err := n.Listen("h:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestNetwork_Dial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		dial := func(limit time.Duration) (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c, err := n.Dial(ctx, "a", "b:1")
			if err == nil {
				closeAll(c)
			}
			return err
		}
		expect := func(limit, after time.Duration, want error) {
			t.Helper()
			var err error
			if took := took(func() { err = dial(limit) }); took != after || !errors.Is(err, want) {
				t.Errorf("%v after %v, want %v after %v", err, took, want, after)
			}
		}
		expect(time.Second, 0, syscall.ECONNREFUSED)
		expect(0, 0, context.DeadlineExceeded)
		for _, l := range [][2]string{{"a", "b"}, {"b", "a"}} {
			n.Cut(l[0], l[1], true)
			expect(time.Second, time.Second, context.DeadlineExceeded)
			time.AfterFunc(time.Second, func() { n.Cut("c", "d", true) }) // nothing to it
			time.AfterFunc(time.Minute, func() { n.Cut(l[0], l[1], false) })
			expect(time.Hour, time.Minute, syscall.ECONNREFUSED)
		}
		l, err := n.Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		expect(time.Second, time.Second, context.DeadlineExceeded) // nobody accepts
		if err, ok := errors.AsType[net.Error](dial(time.Second)); !ok || !err.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		time.AfterFunc(time.Second, func() { _ = l.Close() }) // once
		expect(time.Hour, time.Second, syscall.ECONNREFUSED)
	})
}

func TestNetwork_Addresses(t *testing.T) {
	n := memnet.New(0)
	l, err := n.Listen("b:2181")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // once
	var seen []string
	for range 2 {
		dialed := make(chan net.Conn)
		go func() { // ends with Accept below; awaited by the receive
			c, err := n.Dial(t.Context(), "a", "b:2181")
			if err != nil {
				t.Error(err)
			}
			dialed <- c
		}()
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		a := <-dialed
		defer closeAll(a, b)
		if a.RemoteAddr().String() != "b:2181" || b.LocalAddr() != a.RemoteAddr() || b.RemoteAddr() != a.LocalAddr() {
			t.Error(a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
		}
		seen = append(seen, a.LocalAddr().String())
	}
	if !slices.Equal(seen, []string{"a:49152", "a:49153"}) {
		t.Error(seen)
	}
}

func TestNetwork_Kill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		a, b := connect(t, n)
		var listeners []net.Listener
		for _, address := range []string{"b:1", "b:2", "bb:1"} {
			l, err := n.Listen(address)
			if err != nil {
				t.Fatal(err)
			}
			listeners = append(listeners, l)
		}
		accepted := make(chan error, 2)
		for _, l := range listeners[:2] {
			go func() { // ends by Close; awaited by the receives
				_, err := l.Accept()
				accepted <- err
			}()
		}
		synctest.Wait()
		n.Kill("b")
		synctest.Wait()
		if len(accepted) > 0 {
			t.Error("a killed host sees the end of its listener: ", <-accepted)
		}
		for _, c := range []net.Conn{a, b} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		}
		if _, err := n.Dial(t.Context(), "a", "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		if _, err := n.Listen("bb:1"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("another host was killed, too: %v", err)
		}
		for _, l := range listeners { // who listened need not know that the host was killed
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := <-accepted; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		connect(t, n) // the host is back
	})
}

// A change of a link applies to connections that wait to be accepted.
func TestNetwork_TearsWhatIsDialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		l, err := n.Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // once
		dialed := make(chan net.Conn, 1)
		go func() { // ends with Accept below; awaited by the receive
			c, err := n.Dial(t.Context(), "a", "b:1")
			if err != nil {
				t.Error(err)
			}
			dialed <- c
		}()
		synctest.Wait()
		n.Tear("a", "b")
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		a := <-dialed
		defer closeAll(a, b)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}

// Closed and torn connections leave nothing in the network.
func TestNetwork_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		expect := func(what string, want int) {
			t.Helper()
			if got := n.Ends(); got != want {
				t.Errorf("%s: %d ends, want %d", what, got, want)
			}
		}
		a, b := connect(t, n)
		expect("open", 2)
		closeAll(a)
		expect("one closed", 1)
		closeAll(b)
		expect("both closed", 0)
		connect(t, n)
		n.Tear("a", "b")
		expect("torn", 0)
		l, err := n.Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // once
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, "a", "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		expect("never accepted", 0)
	})
}

// Bytes that are sent on several connections at one moment arrive on all of them after the latency,
// also if one of the connections is closed meanwhile. A deadline that is moved while its timer runs
// ends no read early.
func TestNetwork_ArrivalsOfOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = time.Millisecond
		n := memnet.New(latency)
		var from, to []net.Conn
		for range 3 {
			a, b := connect(t, n)
			from, to = append(from, a), append(to, b)
		}
		for round := range 3 {
			var reading sync.WaitGroup
			for i, c := range to[round:] {
				if err := c.SetReadDeadline(time.Now().Add(time.Duration(1+round) * latency * 3 / 2)); err != nil {
					t.Fatal(err)
				}
				reading.Go(func() { // ends when the bytes arrive
					if d := took(func() { receive(t, c, "x") }); d != latency {
						t.Errorf("round %d: connection %d: read after %v", round, i, d)
					}
				})
			}
			synctest.Wait()
			for _, c := range from[round:] {
				send(t, c, "x")
			}
			closeAll(from[:round]...)
			reading.Wait()
		}
	})
}
