package members

import (
	"bytes"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// A report is read as it was made. Part of a report is refused, unless it is a report with fewer
// sessions.
func TestReport(t *testing.T) {
	type heard struct {
		id proto.SessionID
		ms uint64
	}
	made, state := []heard{{LeaderTime, 1234}, {1 << 56, 0}, {-2, 3000}}, Digest{Index: 300, Hash: 1 << 60}
	b := AppendState(nil, state)
	whole := map[int]int{len(b): 0} // how many sessions a report of that length names
	for i, h := range made {
		b = AppendHeard(b, h.id, h.ms)
		whole[len(b)] = i + 1
	}
	for n := range len(b) + 1 {
		read := 0
		got, err := ParseReport(b[:n], func(id proto.SessionID, ms uint64) {
			if want := made[read]; want != (heard{id, ms}) {
				t.Errorf("session %d: %v, %d ms, want %v", read, id, ms, want)
			}
			read++
		})
		want, ok := whole[n]
		if (err == nil) != ok || ok && (got != state || read != want) {
			t.Errorf("%d of %d bytes: %v, %d sessions, %v", n, len(b), got, read, err)
		}
	}
	if _, err := ParseReport(bytes.Repeat([]byte{0xff}, 20), nil); err == nil {
		t.Error("a number of more than 64 bits is taken")
	}
}
