package liveness

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A session that was heard lasts for its timeout from then.
func TestTouch_Prolongs(t *testing.T) {
	const timeout = 10 * time.Second
	e := NewExpiry(1, time.Second)
	for id := range proto.SessionID(2) {
		e.Attached(id, timeout, true, begin)
	}
	e.Touch(1, begin.Add(8*time.Second))
	for id, want := range map[proto.SessionID]bool{0: true, 1: false} {
		if got := e.tracker.Silent(id, begin.Add(12*time.Second)); got != want {
			t.Errorf("12 s after it was attached session %d is silent: %v", id, got)
		}
	}
}

// A local session lasts for its timeout from when its connection was last heard: while it is
// connected, and after it was left.
func TestLocals_Heard(t *testing.T) {
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for _, released := range []bool{false, true} {
		l := NewLocals(time.Second, func(int, time.Time) time.Time { return at(8) })
		l.Add(1, Local[int]{Conn: 1, TimeoutMs: 10_000}, begin)
		if released {
			l.Release(1, 1, begin)
		}
		if ended := l.Expire(at(13)); len(ended) > 0 {
			t.Errorf("left %v: it has expired 5 s after it was heard", released)
		}
		if ended := l.Expire(at(20)); len(ended) != 1 || released != (ended[1] == 0) {
			t.Errorf("left %v: %v have expired 12 s after it was heard", released, ended)
		}
	}
}

// A session that is added with a time from before a jump of the clock has its timeout from the
// jump on.
func TestLocals_AddedDuringAJump(t *testing.T) {
	l := NewLocals(time.Second, func(int, time.Time) time.Time { return begin })
	jumped := begin.Add(time.Hour)
	l.Jump(func() (time.Time, []int64) { return jumped, nil })
	l.Add(2, Local[int]{Conn: 1, TimeoutMs: 10_000}, begin)
	if ended := l.Expire(jumped.Add(5 * time.Second)); len(ended) > 0 {
		t.Errorf("%v have expired after half their timeout", ended)
	}
}
