package bounds

import "testing"

// Only few large multis are under way, and other writes do not wait for them.
func TestWrites_BigMultis(t *testing.T) {
	var l Writes
	l.Init(100, 64<<20, 0, 0)
	for range maxBig {
		if !l.RoomForBig() || !l.Try(1000, true) {
			t.Fatal("no room")
		}
	}
	if l.RoomForBig() || l.Try(1000, true) {
		t.Error("room for one more")
	}
	if !l.Try(10, false) {
		t.Error("a small write waits for the large")
	}
	l.Wait(false, 0)
	l.Release(1000, true)
	if !l.RoomForBig() {
		t.Error("no room when one is done")
	}
	l.Wait(true, 0)
}
