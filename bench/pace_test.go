//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestPace_Due(t *testing.T) {
	p := pace{interval: 4 * time.Millisecond}
	for n := 1; n <= 5; n++ {
		if got, want := p.due(), time.Duration(n)*4*time.Millisecond; got != want {
			t.Errorf("request %d is due after %s, want %s", n, got, want)
		}
		p.sent++
	}
}

// A server that stands still delays all that was due meanwhile: each shows with the time since it
// was due, not since it was sent.
func TestPaced_StallShowsInAllThatWereDue(t *testing.T) {
	const rate, stall = 200, 300 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serveStalling(l, stall) }() // ends with its connection; awaited below
	load := openLoad([]string{l.Addr().String()}, 1, 1)
	stop, began := make(chan struct{}), time.Now()
	time.AfterFunc(2*stall, func() { close(stop) })
	seen := load.paced(t.Context(), workloadNamed("set 100 B"), rate, stop)
	due := int64(rate*time.Since(began)/time.Second) + 1 // at most: the machine may be slow to stop
	if err := load.close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	h := &seen.latencies
	// Half of what is due in twice the stall is due during it: evenly between the whole stall and
	// nothing late.
	if want := int64(rate * 2 * stall / time.Second); h.h.TotalCount() < want/2 || h.h.TotalCount() > due {
		t.Errorf("%d answered, want about %d and at most %d", h.h.TotalCount(), want, due)
	}
	if h.max() < stall*8/10 {
		t.Errorf("the longest took %s under a stall of %s", h.max(), stall)
	}
	if got := h.quantile(0.75); got < stall/5 {
		t.Errorf("a quarter took no longer than %s: they were not counted from when they were due", got)
	}
}

// serveStalling answers one connection as the bare server does, its first request after the stall.
func serveStalling(l net.Listener, stall time.Duration) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	if err := bareConn(&stallingConn{Conn: conn, stall: stall}, nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// stallingConn stands still before the second write: the one behind the answer to the handshake.
type stallingConn struct {
	net.Conn
	writes int
	stall  time.Duration
}

func (c *stallingConn) Write(b []byte) (int, error) {
	if c.writes++; c.writes == 2 {
		time.Sleep(c.stall) // what the test is about
	}
	return c.Conn.Write(b)
}
