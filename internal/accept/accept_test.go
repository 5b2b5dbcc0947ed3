package accept_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/memnet"
)

// script is a listener that returns results in order.
type script struct {
	net.Listener
	errs []error // nil: a connection
}

func (l *script) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	if err != nil {
		return nil, err
	}
	_, conn := net.Pipe()
	return conn, nil
}

// Loop goes on after errors, waits longer after each, and ends with the listener.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few, ms := errors.New("few descriptors"), time.Millisecond
		l := &script{errs: []error{nil, few, few, few, nil, few, net.ErrClosed}}
		var waits []time.Duration
		taken := 0
		err := accept.Loop(t.Context(), l, func(err error, retry time.Duration) {
			if !errors.Is(err, few) {
				t.Error(err)
			}
			waits = append(waits, retry)
		}, func(net.Conn) { taken++ })
		if !errors.Is(err, net.ErrClosed) || taken != 2 || !slices.Equal(waits, []time.Duration{5 * ms, 10 * ms, 20 * ms, 5 * ms}) {
			t.Errorf("%v, %d connections, waits %v", err, taken, waits)
		}
	})
}

// A connection that comes after the end is closed, and a listener with an error of its own for
// being closed is not asked again.
func TestLoop_Ends(t *testing.T) {
	for _, last := range []error{nil, errors.New("closed in another way")} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := accept.Loop(ctx, &script{errs: []error{last}}, nil, func(net.Conn) { t.Error("taken") })
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// The first bytes tell TLS from what members and clients of ZooKeeper and HTTP begin with.
func TestBeginsTLS(t *testing.T) {
	for first, want := range map[string]bool{
		"\x16": true, "\x16\x03\x01": true, "\x16\x02": false, "": false, "\x00\x00\x00\x2c": false, "GET /": false, "ruok": false,
	} {
		if accept.BeginsTLS([]byte(first)) != want {
			t.Errorf("%q", first)
		}
	}
}

// A unified listener hands out what has begun, with all its bytes. What is silent delays nobody,
// and is closed after the patience, or with the listener.
func TestUnified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		below, err := n.Listen("port:1")
		if err != nil {
			t.Fatal(err)
		}
		l := accept.Unified(below, &tls.Config{}, time.Minute)
		dial := func(first string) net.Conn {
			nc, err := n.Dial(t.Context(), "client", "port:1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(nc, first); err != nil {
				t.Fatal(err)
			}
			return nc
		}
		silent := dial("")
		for first, secure := range map[string]bool{"GET": false, "\x16\x03": true} {
			dial(first)
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, is := conn.(*tls.Conn); is != secure {
				t.Errorf("%q is TLS: %v", first, is)
			}
			if !secure {
				b := make([]byte, len(first))
				if _, err := io.ReadFull(conn, b); err != nil || string(b) != first {
					t.Errorf("%q, %v, want %q", b, err, first)
				}
			}
		}
		begun := time.Now()
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begun) != time.Minute {
			t.Errorf("a silent connection: %v after %v", err, time.Since(begun))
		}
		silent = dial("")
		synctest.Wait()
		if err := errors.Join(l.Close(), l.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if _, err := silent.Read(make([]byte, 1)); err == nil {
			t.Error("a silent connection outlives the listener")
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
