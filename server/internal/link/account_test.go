package link

import (
	"bytes"
	"testing"

	"github.com/gozkd/gozkd/internal/rawio"
)

// A connection whose goroutine is writing, and has not waited for the client yet, is not slow: on a
// busy machine that goroutine may be stopped anywhere.
func TestCloseSlow_WhileOutputIsOffered(t *testing.T) {
	c := newLink(t)
	c.raw = new(rawio.Conn) // not used: another goroutine is writing
	c.mu.Lock()
	c.Out.Buf = append(c.Out.Buf, make([]byte, uncounted)...)
	c.flushing = true
	c.Recount(true)
	c.mu.Unlock()
	if c.CloseSlow() {
		t.Error("closed before its socket refused output")
	}
	c.memory.waited = true
	if !c.CloseSlow() {
		t.Error("not closed, although the client is waited for")
	}
	if n := c.host.Memory.Unread.Load(); n != 0 {
		t.Errorf("%d bytes are charged after the end", n)
	}
}

// An output that waits for a client keeps no large buffer for few bytes, and sends the same.
func TestOutput_Shrink(t *testing.T) {
	var o Output
	o.Buf = append(make([]byte, 0, 4*minPooledOutput), "sent"...)
	o.share(bytes.Repeat([]byte{'a'}, ShareBytes))
	o.Buf = append(o.Buf, "middle"...)
	o.share(bytes.Repeat([]byte{'b'}, ShareBytes))
	o.Buf = append(o.Buf, "end"...)
	o.Advance(3)
	want := append([]byte("t"), bytes.Repeat([]byte{'a'}, ShareBytes)...)
	want = append(append(want, "middle"...), bytes.Repeat([]byte{'b'}, ShareBytes)...)
	want = append(want, "end"...)
	o.shrink()
	if cap(o.Buf) > minPooledOutput || o.Len() != len(want) {
		t.Errorf("%d bytes of memory, %d of output, want %d", cap(o.Buf), o.Len(), len(want))
	}
	var got []byte
	for o.Len() > 0 {
		b, _ := o.Next()
		got = append(got, b...)
		o.Advance(len(b))
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes are sent, want %d others", len(got), len(want))
	}
}
