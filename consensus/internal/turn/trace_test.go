package turn

import (
	"testing"
	"time"
)

func TestMarks(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var m marks
	m.latest(3, at(1))
	m.latest(7, at(2))
	for _, c := range []struct {
		number uint64
		want   time.Time
	}{{1, at(1)}, {3, at(1)}, {4, at(2)}, {7, at(2)}, {8, time.Time{}}, {3, time.Time{}}} {
		if got := m.at(c.number); !got.Equal(c.want) {
			t.Errorf("%d was reached at %v, want %v", c.number, got, c.want)
		}
	}
	m.latest(9, at(3))
	m.latest(12, at(4))
	m.latest(8, at(5)) // truncated, and written again from 8 on
	if got := m.at(9); !got.IsZero() {
		t.Errorf("9 was truncated, but reached at %v", got)
	}
	m.first(20, at(6))
	m.first(20, at(7)) // sent again
	if got := m.at(20); !got.Equal(at(6)) {
		t.Errorf("20 was first sent at %v", got)
	}
	for n := range uint64(10_000) { // marks that were looked up are forgotten
		m.latest(30+n, at(8))
		m.at(30 + n)
	}
	if cap(m.list) > 128 {
		t.Errorf("%d marks are kept", cap(m.list))
	}
}
