package capacity

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestGauge_CountsWhatIsBesidesTheState: what two collections in a row find in use besides the
// state, as it was then, lessens what a server can hold. What only one of them finds does not.
func TestGauge_CountsWhatIsBesidesTheState(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	if a := g.Measure(math.MaxInt64); a != (Ability{Weight: 1000, Cause: Memory}) {
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
		if a := g.Measure(math.MaxInt64); a != (Ability{Weight: c.want, Cause: Memory}) {
			t.Errorf("%d: %+v, want %d", i, a, c.want)
		}
	}
	if a := (&Gauge{Allowed: 1}).Measure(math.MaxInt64); a != (Ability{Weight: 1, Cause: Memory}) {
		t.Errorf("a byte is allowed: %+v", a)
	}
	none := &Gauge{}
	if none.Collected(5, Usage{Live: 100}); none.Measure(math.MaxInt64) != (Ability{}) {
		t.Errorf("without a bound: %+v", none.Measure(math.MaxInt64))
	}
}

func TestGauge_LeastOfMemoryAndDisk(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	for disk, want := range map[int64]Ability{
		4000: {Weight: 1000, Cause: Memory},
		1400: {Weight: 700, Cause: Disk},
		600:  {Weight: 300, Cause: Disk}, // a state of 400 must shrink
		-900: {Weight: 1, Cause: Disk},
	} {
		if a := g.Measure(disk); a != want {
			t.Errorf("%d: %+v, want %+v", disk, a, want)
		}
	}
	if a := (&Gauge{}).Measure(4000); a != (Ability{Weight: 2000, Cause: Disk}) {
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
			case now.Weight == 0 && least.Counts(weight) && mayRise:
				t.Fatalf("no limit at %d, although the members can hold %+v", weight, least)
			case now.Weight != 0 && mayRise && (now.Cause == 0 || max(now.Weight-least.Weight, least.Weight-now.Weight)*100 > now.Weight):
				t.Fatalf("the limit at %d is %+v, the members can hold %+v", weight, now, least)
			case now.Weight > least.Weight+now.Weight/100 && least.Counts(weight):
				t.Fatalf("the limit at %d is %+v, the members can hold %+v", weight, now, least)
			}
		}
	})
}

// An ability counts from a quarter of it on, and the smaller of two abilities has a cause.
func TestAbility(t *testing.T) {
	for _, tc := range []struct {
		weight int64
		a      Ability
		want   bool
	}{{25, Ability{100, Memory, 1}, false}, {26, Ability{100, Memory, 1}, true}, {26, Ability{100, Nothing, 1}, false}} {
		if got := tc.a.Counts(tc.weight); got != tc.want {
			t.Errorf("%d counts for %+v: %v", tc.weight, tc.a, got)
		}
	}
	none, small, large := Ability{}, Ability{5, Disk, 1}, Ability{6, Memory, 2}
	for _, tc := range []struct{ a, b, want Ability }{
		{none, small, small}, {small, none, small}, {small, large, small}, {large, small, small}, {small, Ability{5, Memory, 2}, small}, {none, none, none},
	} {
		if got := tc.a.Least(tc.b); got != tc.want {
			t.Errorf("of %+v and %+v %+v is less", tc.a, tc.b, got)
		}
	}
}

// What a leader proposes, by what the members have reported.
func TestBoard_Proposes(t *testing.T) {
	mem := func(weight int64, member uint8) Ability { return Ability{weight, Memory, member} }
	for _, tc := range []struct {
		what    string
		now     Ability
		weight  int64
		reports []Ability
		want    Ability
		propose bool
	}{
		{"nothing", Ability{}, 1000, nil, Ability{}, false},
		{"far away", Ability{}, 250, []Ability{mem(1000, 1)}, Ability{}, false},
		{"near", Ability{}, 251, []Ability{mem(1000, 1)}, mem(1000, 1), true},
		{"the least", Ability{}, 900, []Ability{mem(1000, 1), mem(999, 2), mem(1001, 3)}, mem(999, 2), true},
		{"of two that are equal the first", Ability{}, 900, []Ability{mem(1000, 2), mem(1000, 1)}, mem(1000, 1), true},
		{"not of a stranger", Ability{}, 900, []Ability{mem(1000, 1), mem(500, 9)}, mem(1000, 1), true},
		{"as it is", mem(1000, 1), 900, []Ability{mem(1000, 1)}, mem(1000, 1), false},
		{"a hundredth more", mem(1000, 1), 900, []Ability{mem(1010, 1)}, mem(1000, 1), false},
		{"more than a hundredth more", mem(1000, 1), 900, []Ability{mem(1011, 1)}, mem(1011, 1), true},
		{"a hundredth less", mem(1000, 1), 900, []Ability{mem(990, 1)}, mem(1000, 1), false},
		{"more than a hundredth less", mem(1000, 1), 900, []Ability{mem(989, 1)}, mem(989, 1), true},
		{"another cause", mem(1000, 1), 900, []Ability{{1000, Disk, 1}}, Ability{1000, Disk, 1}, true},
		{"its member is silent", mem(1000, 1), 900, []Ability{mem(2000, 2)}, mem(1000, 1), false},
		{"its member is silent, another can hold less", mem(1000, 1), 900, []Ability{mem(500, 2)}, mem(500, 2), true},
		{"its member is silent, another has another cause", mem(1000, 1), 900, []Ability{{1000, Disk, 2}}, Ability{1000, Disk, 2}, true},
		{"its member is no member", mem(1000, 9), 900, []Ability{mem(2000, 2)}, mem(2000, 2), true},
		{"it goes later than it comes", mem(1000, 1), 126, []Ability{mem(1000, 1)}, mem(1000, 1), false},
		{"it goes", mem(1000, 1), 125, []Ability{mem(1000, 1)}, Ability{}, true},
		{"it stays, since its member is silent", mem(1000, 1), 1, []Ability{mem(900, 2)}, mem(1000, 1), false},
	} {
		var b Board
		for _, a := range tc.reports {
			b.Report(uint64(a.Member), Ability{Weight: a.Weight, Cause: a.Cause})
		}
		got, propose := b.Propose(tc.now, tc.weight, func(id uint64) bool { return id < 9 })
		if got != tc.want || propose != tc.propose {
			t.Errorf("%s: %+v, %v, want %+v, %v", tc.what, got, propose, tc.want, tc.propose)
		}
		if _, stays := b.reports[9]; stays {
			t.Errorf("%s: the report of a stranger stays", tc.what)
		}
	}
}
