package server

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A frame that two connections share as their output does not change when something is appended to
// one of them, or when buffers return to the pool.
func TestOutput_SharedFrame(t *testing.T) {
	frame := appendEvent(make([]byte, 0, eventBytes+2), 7, proto.EventDeleted, "/a")
	if len(frame) != cap(frame) {
		t.Fatalf("%d bytes in room for %d", len(frame), cap(frame))
	}
	want := bytes.Clone(frame)
	var one, other conn
	one.appendShared(frame)
	other.appendShared(frame)
	if &one.out.buf[0] != &frame[0] || &other.out.buf[0] != &frame[0] {
		t.Error("copied where nothing was on the output")
	}
	one.out.buf = appendStatus(one.out.buf, 1, 8, proto.OK)
	if !bytes.Equal(one.out.buf[:len(frame)], want) || !bytes.Equal(other.out.buf, want) {
		t.Errorf("a reply behind the event of one:\n%x\n%x\nwant\n%x", one.out.buf, other.out.buf, want)
	}
	putOutput(other.out.buf)
	for range 10 {
		var c conn
		c.borrowOutput()
		c.out.buf = append(c.out.buf, bytes.Repeat([]byte{0xff}, minPooledOutput)...)
	}
	if !bytes.Equal(frame, want) {
		t.Errorf("the frame became\n%x\nwant\n%x", frame, want)
	}
}

// A frame as long as a pooled buffer is copied, because it could not be told from such a buffer.
func TestOutput_LongFrame(t *testing.T) {
	frame := make([]byte, minPooledOutput)
	var c conn
	c.appendShared(frame)
	if &c.out.buf[0] == &frame[0] {
		t.Error("shared")
	}
	if !bytes.Equal(c.out.buf, frame) {
		t.Errorf("%d bytes, want %d", len(c.out.buf), len(frame))
	}
}

// A connection that gets a reply is on the list that is flushed first, once, whatever else it gets.
func TestTouch(t *testing.T) {
	var a applier
	var event, reply, both, again conn
	for _, c := range []*conn{&event, &both} {
		a.touch(c, touchedByEvent)
		a.touch(c, touchedByEvent)
	}
	for _, c := range []*conn{&reply, &both, &again} {
		a.touch(c, touchedByReply)
		a.touch(c, touchedByReply)
	}
	a.touch(&again, touchedByEvent)
	if want := []*conn{&reply, &both, &again}; !slices.Equal(a.replied, want) {
		t.Errorf("replied %p, want %p", a.replied, want)
	}
	if want := []*conn{&event, &both}; !slices.Equal(a.notified, want) {
		t.Errorf("notified %p, want %p", a.notified, want)
	}
	for _, c := range []*conn{&event, &reply, &both, &again} {
		c.closed = true // nothing is sent
	}
	a.flush(&a.replied)
	a.flush(&a.notified)
	if len(a.replied)+len(a.notified) > 0 || event.touched != touchedNot || both.touched != touchedNot {
		t.Error("touched still when all was sent")
	}
}

// Large data is sent without being copied, and every byte in its place, however few bytes the
// socket takes at once and whatever is appended meanwhile.
func TestOutput_SharesLargeData(t *testing.T) {
	large := [][]byte{bytes.Repeat([]byte{1}, shareBytes), bytes.Repeat([]byte{2}, shareBytes+1), nil, make([]byte, shareBytes-1)}
	var o output
	var want, got []byte
	for i, data := range large {
		m := o.mark()
		o.buf = append(o.buf, 0, 0, 0, 0, byte(i))
		o.appendData(data)
		o.buf = append(o.buf, 99)
		o.endFrame(m)
		body := append(jute.AppendBuffer([]byte{byte(i)}, data), 99)
		want = append(binary.BigEndian.AppendUint32(want, uint32(len(body))), body...)
		m = o.mark()
		o.appendData(large[0])
		o.truncate(m)
	}
	if len(o.shared) != 2 || &o.shared[0].data[0] != &large[0][0] {
		t.Fatalf("%d of 2 large values are shared", len(o.shared))
	}
	later := output{buf: []byte{7, 7}}
	later.appendData(large[1])
	want = append(append(want, 7, 7), jute.AppendBuffer(nil, large[1])...)
	for step := 1; o.len() > 0; step = step*3%5003 + 1 {
		if n := len(want) - len(got); o.len() != n && later.len() == 0 {
			t.Fatalf("%d bytes are left, want %d", o.len(), n)
		}
		b, more := o.next()
		if last := len(got)+len(b) == len(want); more == last {
			t.Fatalf("after %d of %d bytes come %d: more is %v", len(got), len(want), len(b), more)
		}
		n := min(step, len(b))
		got = append(got, b[:n]...)
		if o.advance(n); later.len() > 0 {
			o.appendOutput(later)
			later = output{}
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
}
