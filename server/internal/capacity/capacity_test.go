package capacity

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestGauge_CountsWhatIsBesidesTheState: what two collections in a row find in use besides the
// state, as it was then, lessens what a server can hold. What only one of them finds does not.
func TestGauge_CountsWhatIsBesidesTheState(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	if a := g.Measure(nil); a != (Ability{Weight: 1000, Cause: Memory}) {
		t.Errorf("before the first collection: %+v", a)
	}
	for i, c := range []struct{ weight, live, other, want int64 }{
		{100, 150, 10, 940},
		{300, 750, 10, 940}, // a peak
		{300, 350, 10, 940},
		{300, 650, 20, 940},
		{200, 640, 20, 630}, // and one that lasts
		{300, 250, 20, 980},
		{250, 5000, 20, 980},
		{250, 5000, 20, 1}, // never 0, which would mean no limit
	} {
		g.Collected(c.weight, Usage{Live: c.live, Other: c.other})
		if a := g.Measure(nil); a != (Ability{Weight: c.want, Cause: Memory}) {
			t.Errorf("%d: %+v, want %d", i, a, c.want)
		}
	}
	none := &Gauge{}
	if none.Collected(5, Usage{Live: 100}); none.Measure(nil) != (Ability{}) {
		t.Errorf("without a bound: %+v", none.Measure(nil))
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
		if a := g.Measure(&c.disk); a != c.want {
			t.Errorf("%+v: %+v, want %+v", c.disk, a, c.want)
		}
	}
	if a := (&Gauge{}).Measure(&Room{Free: 5000, Reserve: 1000}); a != (Ability{Weight: 2000, Cause: Disk}) {
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
