package server

import (
	"bytes"
	"testing"
)

// A connection whose goroutine is writing, and has not waited for the client yet, is not slow: on a
// busy machine that goroutine may be stopped anywhere.
func TestCloseSlow_WhileOutputIsOffered(t *testing.T) {
	_, c, _ := costServer(t, Config{})
	c.raw = new(rawConn) // not used: another goroutine is writing
	c.mu.Lock()
	c.out.buf = append(c.out.buf, make([]byte, uncounted)...)
	c.flushing = true
	c.recount(true)
	c.mu.Unlock()
	if c.closeSlow() {
		t.Error("closed before its socket refused output")
	}
	c.memory.waited = true
	if !c.closeSlow() {
		t.Error("not closed, although the client is waited for")
	}
	if n := c.server.conns.budget.Unread.Load(); n != 0 {
		t.Errorf("%d bytes are charged after the end", n)
	}
}

// An output that waits for a client keeps no large buffer for few bytes, and sends the same.
func TestOutput_Shrink(t *testing.T) {
	var o output
	o.buf = append(make([]byte, 0, 4*minPooledOutput), "sent"...)
	o.share(bytes.Repeat([]byte{'a'}, shareBytes))
	o.buf = append(o.buf, "middle"...)
	o.share(bytes.Repeat([]byte{'b'}, shareBytes))
	o.buf = append(o.buf, "end"...)
	o.advance(3)
	want := append([]byte("t"), bytes.Repeat([]byte{'a'}, shareBytes)...)
	want = append(append(want, "middle"...), bytes.Repeat([]byte{'b'}, shareBytes)...)
	want = append(want, "end"...)
	o.shrink()
	if cap(o.buf) > minPooledOutput || o.len() != len(want) {
		t.Errorf("%d bytes of memory, %d of output, want %d", cap(o.buf), o.len(), len(want))
	}
	var got []byte
	for o.len() > 0 {
		b, _ := o.next()
		got = append(got, b...)
		o.advance(len(b))
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes are sent, want %d others", len(got), len(want))
	}
}
