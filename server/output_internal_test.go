package server

import (
	"bytes"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// A frame that two connections share as their output does not change when something is appended to one of them, or when buffers return to the pool.
func TestOutput_SharedFrame(t *testing.T) {
	frame := appendEvent(make([]byte, 0, eventBytes+2), 7, proto.EventDeleted, "/a")
	if len(frame) != cap(frame) {
		t.Fatalf("%d bytes in room for %d", len(frame), cap(frame))
	}
	want := bytes.Clone(frame)
	var one, other conn
	one.appendShared(frame)
	other.appendShared(frame)
	if &one.out[0] != &frame[0] || &other.out[0] != &frame[0] {
		t.Error("copied where nothing was on the output")
	}
	one.out = appendStatus(one.out, 1, 8, proto.OK)
	if !bytes.Equal(one.out[:len(frame)], want) || !bytes.Equal(other.out, want) {
		t.Errorf("a reply behind the event of one:\n%x\n%x\nwant\n%x", one.out, other.out, want)
	}
	putOutput(other.out)
	for range 10 {
		var c conn
		c.borrowOutput()
		c.out = append(c.out, bytes.Repeat([]byte{0xff}, minPooledOutput)...)
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
	if &c.out[0] == &frame[0] {
		t.Error("shared")
	}
	if !bytes.Equal(c.out, frame) {
		t.Errorf("%d bytes, want %d", len(c.out), len(frame))
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
