package server

import (
	"net"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// The frame of an event fills its buffer, so that connections can share it.
func TestAppendEvent_Full(t *testing.T) {
	frame := appendEvent(make([]byte, 0, eventBytes+2), 7, proto.EventDeleted, "/a")
	if len(frame) != cap(frame) {
		t.Fatalf("%d bytes in room for %d", len(frame), cap(frame))
	}
}

// A connection that gets a reply is on the list that is flushed first, once, whatever else it gets.
func TestTouch(t *testing.T) {
	var a applier
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	nc, _ := net.Pipe() // nothing is sent
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
		c.Init(&s.conns.links, c, nc)
		c.Close()
	}
	a.flush(&a.replied)
	a.flush(&a.notified)
	if len(a.replied)+len(a.notified) > 0 || event.touched != touchedNot || both.touched != touchedNot {
		t.Error("touched still when all was sent")
	}
}

// A write that is used again has the memory of its former record if that was short, and nothing
// else of the former request.
func TestClientWrite_Recycle(t *testing.T) {
	for size, kept := range map[int]bool{100: true, 4 << 10: true, 4<<10 + 1: false, 1 << 20: false} {
		w := &clientWrite{record: make([]byte, size), closes: true}
		w.recycle()
		if len(w.record) != 0 || (cap(w.record) > 0) != kept || w.closes {
			t.Errorf("after a record of %d bytes: %d bytes in %d, closes %v", size, len(w.record), cap(w.record), w.closes)
		}
	}
}
