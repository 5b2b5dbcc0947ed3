//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
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
	const want = int64(rate * 2 * stall / time.Second)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// Not after a time: on a busy machine much less would have been sent by then, or much more.
	stop, served := make(chan struct{}), make(chan error, 1)
	go func() { // ends with its connection; awaited below
		served <- serveStalling(l, stall, want, sync.OnceFunc(func() { close(stop) }))
	}()
	load := openLoad([]string{l.Addr().String()}, 1, 1)
	began := time.Now()
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
	if n := h.h.TotalCount(); n < want || n > due {
		t.Errorf("%d answered, want at least %d and at most %d", n, want, due)
	}
	if h.max() < stall*8/10 {
		t.Errorf("the longest took %s under a stall of %s", h.max(), stall)
	}
	if got := h.quantile(0.75); got < stall/5 {
		t.Errorf("a quarter took no longer than %s: they were not counted from when they were due", got)
	}
}

// serveStalling answers one connection as the bare server does, its first request after the stall.
// Before it sends the reply to request number enough, it calls done.
func serveStalling(l net.Listener, stall time.Duration, enough int64, done func()) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	if err := bareConn(&stallingConn{Conn: conn, stall: stall, enough: enough, done: done}, nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// stallingConn stands still before the second write: the one behind the answer to the handshake.
type stallingConn struct {
	net.Conn
	writes int
	stall  time.Duration

	replied, enough int64 // replies to setData
	done            func()
}

func (c *stallingConn) Write(b []byte) (int, error) {
	if c.writes++; c.writes == 2 {
		time.Sleep(c.stall) // what the test is about
	}
	if c.writes > 1 {
		c.replied += int64(len(b) / (4 + proto.ReplyHeaderBytes + proto.StatBytes))
	}
	if c.replied >= c.enough {
		c.done()
	}
	return c.Conn.Write(b)
}
