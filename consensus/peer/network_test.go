package peer

import (
	"fmt"
	"testing"
)

func TestThreeMembersTalk(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b, c := w.start(t, 1), w.start(t, 2), w.start(t, 3)
		know(a, b, c)
		for i := range 100 {
			for _, m := range []*member{a, b, c} {
				for _, to := range []uint64{1, 2, 3} {
					if sent := m.Send(to, fmt.Appendf(nil, "frame %d", i)); sent != (to != m.id) {
						t.Fatalf("Send from %d to %d is %v", m.id, to, sent)
					}
				}
			}
			if a.Send(9, []byte("stranger")) {
				t.Fatal("sent to a member that is no peer")
			}
		}
		next := make(map[string]int)
		for range 200 {
			got := <-b.frames
			from := got[:1]
			if want := fmt.Sprintf("%s: frame %d", from, next[from]); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			next[from]++
		}
	})
}
