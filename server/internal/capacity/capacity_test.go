package capacity

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestGauge_CountsWhatIsBesidesTheState: what lives besides the state lessens what a server can
// hold, as of the last collection; what the state gained since does not.
func TestGauge_CountsWhatIsBesidesTheState(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	for i, c := range []struct {
		weight, live, other int64
		gcs                 uint64
		want                int64
	}{
		{100, 5000, 10, 7, 990}, // what the start needed for a moment does not count
		{100, 150, 10, 8, 940},
		{200, 150, 10, 8, 940}, // the state grows
		{300, 350, 10, 9, 840}, // 350 live, of which at least 200 are the state
		{300, 320, 20, 10, 960},
		{250, 5000, 20, 11, 1}, // never 0, which would mean no limit
	} {
		if a := g.Measure(c.weight, Usage{Live: c.live, Other: c.other, GCs: c.gcs}, nil); a != (Ability{Weight: c.want, Cause: Memory}) {
			t.Errorf("%d: %+v, want %d", i, a, c.want)
		}
	}
	if a := (&Gauge{}).Measure(5, Usage{Live: 100}, nil); a != (Ability{}) {
		t.Errorf("without a bound: %+v", a)
	}
}

func TestGauge_LeastOfMemoryAndDisk(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	for _, c := range []struct {
		disk Room
		want Ability
	}{
		{Room{Free: 5000, Reserve: 1000}, Ability{Weight: 1000, Cause: Memory}},
		{Room{Free: 1300, Reserve: 1000, Checkpoint: 1100}, Ability{Weight: 700, Cause: Disk}},
		{Room{Free: 100, Reserve: 1000, Checkpoint: 1500}, Ability{Weight: 300, Cause: Disk}}, // the state of 400 must shrink
		{Room{Free: 100, Reserve: 1000}, Ability{Weight: 1, Cause: Disk}},
	} {
		if a := g.Measure(400, Usage{}, &c.disk); a != c.want {
			t.Errorf("%+v: %+v, want %+v", c.disk, a, c.want)
		}
	}
	if a := (&Gauge{}).Measure(400, Usage{}, &Room{Free: 5000, Reserve: 1000}); a != (Ability{Weight: 2000, Cause: Disk}) {
		t.Errorf("%+v", a)
	}
}

// TestBoard_ProposesTheLeast: the limit that results from all proposals is that of the member that
// can hold least, within a hundredth, and is proposed once. A leader that does not know the member
// of the limit yet does not raise the limit.
func TestBoard_ProposesTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Board
		var now Ability
		reported := make(map[uint64]Ability)
		members := uint64(3)
		isMember := func(id uint64) bool { return id <= members }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch id := rapid.Uint64Range(1, 4).Draw(t, "member"); rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				members = rapid.Uint64Range(1, 4).Draw(t, "members")
				maps.DeleteFunc(reported, func(id uint64, _ Ability) bool { return !isMember(id) })
			case 1: // another leader
				b, reported = Board{}, make(map[uint64]Ability)
			default:
				if !isMember(id) {
					continue
				}
				a := Ability{Weight: rapid.Int64Range(1, 1000).Draw(t, "weight"), Cause: Cause(rapid.IntRange(0, 2).Draw(t, "cause"))}
				if a.Cause == Nothing {
					a.Weight = 0
				}
				reported[id] = a
				b.Report(id, a)
			}
			weight := rapid.Int64Range(0, 1000).Draw(t, "state")
			was := now
			next, propose := b.Propose(now, weight, isMember)
			if !propose && next != now {
				t.Fatalf("%+v becomes %+v without a proposal", now, next)
			}
			now = next
			if again, propose := b.Propose(now, weight, isMember); propose {
				t.Fatalf("%+v is proposed after %+v", again, now)
			}
			var least Ability
			for _, a := range reported {
				least = least.Least(a)
			}
			_, known := reported[uint64(was.Member)]
			switch mayRise := was.Weight == 0 || known || !isMember(uint64(was.Member)); {
			case now.Weight == 0 && was.Weight != 0 && !mayRise:
				t.Fatalf("%+v is lifted without the word of its member", was)
			case now.Weight > was.Weight && !mayRise:
				t.Fatalf("%+v becomes %+v without the word of its member", was, now)
			case now.Weight == 0 && least.Near(weight) && mayRise:
				t.Fatalf("no limit at %d, although the members can hold %+v", weight, least)
			case now.Weight != 0 && mayRise && (now.Cause == 0 || max(now.Weight-least.Weight, least.Weight-now.Weight)*100 > now.Weight):
				t.Fatalf("the limit at %d is %+v, the members can hold %+v", weight, now, least)
			case now.Weight > least.Weight+now.Weight/100 && least.Near(weight):
				t.Fatalf("the limit at %d is %+v, the members can hold %+v", weight, now, least)
			}
		}
	})
}
