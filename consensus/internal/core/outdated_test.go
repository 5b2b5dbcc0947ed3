package core

import "testing"

func TestIncarnations_AppendAndRead(t *testing.T) {
	c := &Core{streams: Streams{1: {300, 4}, 7: {5, 1}}}
	b := c.AppendIncarnations(nil)
	for server, want := range map[uint64]uint64{1: 300, 7: 5, 2: 0} {
		r := Uvarints{Rest: b}
		if got := ReadIncarnation(&r, server); got != want || r.Bad {
			t.Errorf("server %d has incarnation %d, want %d", server, got, want)
		}
	}
	if r := (Uvarints{}); ReadIncarnation(&r, 1) != 0 || r.Bad {
		t.Error("the hello of an earlier version is malformed")
	}
	for n := range b[1:] { // a hello that was cut off must not look like knowledge of another server
		r := Uvarints{Rest: b[:1+n]}
		if got := ReadIncarnation(&r, 7); got != 0 {
			t.Errorf("%d of %d bytes: incarnation %d", 1+n, len(b), got)
		}
	}
}
