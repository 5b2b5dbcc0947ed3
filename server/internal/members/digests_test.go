package members

import (
	"testing"
	"time"
)

// A member that differs is wrong if more members agree with the leader than differ, or if it has
// differed several times in a row; the leader is wrong if more differ than agree. Each step is a
// report.
func TestDigests_Compare(t *testing.T) {
	begin := time.Unix(1000, 0)
	type step struct {
		from    uint64
		digest  Digest
		at      int // seconds
		since   int // when the leadership began
		verdict Verdict
	}
	right, wrong := Digest{32, 7}, Digest{32, 8}
	for what, steps := range map[string][]step{
		"equal":                  {{2, right, 0, 0, Undecided}, {2, right, 0, 0, Undecided}},
		"of three":               {{3, right, 0, 0, Undecided}, {2, wrong, 0, 0, OtherDiverged}},
		"of two":                 {{2, wrong, 0, 0, Undecided}, {2, wrong, 1, 0, Undecided}, {2, wrong, 2, 0, OtherDiverged}, {2, wrong, 3, 0, OtherDiverged}},
		"not in a row":           {{2, wrong, 0, 0, Undecided}, {2, wrong, 1, 0, Undecided}, {2, right, 2, 0, Undecided}, {2, wrong, 3, 0, Undecided}},
		"the leader":             {{2, wrong, 0, 0, Undecided}, {3, wrong, 0, 0, OwnDiverged}},
		"a tie":                  {{2, wrong, 0, 0, Undecided}, {3, right, 0, 0, Undecided}, {4, wrong, 0, 0, Undecided}, {4, wrong, 0, 0, Undecided}, {4, wrong, 0, 0, OtherDiverged}},
		"an old opinion":         {{2, wrong, 0, 0, Undecided}, {3, wrong, 11, 0, Undecided}},
		"an opinion not too old": {{2, wrong, 0, 0, Undecided}, {3, wrong, 10, 0, OwnDiverged}},
		"an old agreement":       {{3, right, 0, 0, Undecided}, {2, wrong, 11, 0, Undecided}},
		"another leadership":     {{2, wrong, 0, 0, Undecided}, {3, wrong, 1, 1, Undecided}, {2, wrong, 1, 1, OwnDiverged}},
		"nothing is comparable":  {{2, Digest{0, 8}, 0, 0, Undecided}, {2, Digest{48, 8}, 0, 0, Undecided}, {3, Digest{32 + digestEvery*digestCount, 8}, 0, 0, Undecided}, {4, wrong, 0, 0, Undecided}},
		"an index in between":    {{2, Digest{33, 8}, 0, 0, Undecided}, {3, Digest{33, 8}, 0, 0, Undecided}},
		"an earlier one":         {{2, Digest{16, 5}, 0, 0, Undecided}, {2, Digest{16, 6}, 0, 0, Undecided}, {3, Digest{16, 6}, 0, 0, OwnDiverged}},
	} {
		var d Digests
		d.Note(16, 5)
		for _, index := range []uint64{32, 33, 40} {
			d.Note(index, 7)
		}
		if d.Newest() != right {
			t.Errorf("the newest is %v", d.Newest())
		}
		for i, s := range steps {
			now := begin.Add(time.Duration(s.at) * time.Second)
			got := d.Compare(s.from, s.digest, begin.Add(time.Duration(s.since)*time.Second), now, now.Add(-10*time.Second))
			if got != s.verdict {
				t.Errorf("%s, step %d: %d, want %d", what, i, got, s.verdict)
			}
		}
	}
	var d Digests
	d.Note(32, 7)
	if got := d.Compare(2, wrong, time.Time{}, begin, begin); got != Undecided { // the zero time is no leadership that was seen
		t.Errorf("the first report: %d", got)
	}
	for index := range uint64(digestEvery * (digestCount + 1)) {
		d.Note(index, index+1)
	}
	for index, want := range map[uint64]Verdict{16: OtherDiverged, digestEvery * digestCount: OtherDiverged, 0: Undecided} {
		var got Verdict
		for range differTimes {
			got = d.Compare(2, Digest{index, 1 << 60}, begin, begin, begin)
		}
		if got != want {
			t.Errorf("after %d entries the digest of entry %d: %d", digestEvery*(digestCount+1), index, got)
		}
	}
}
