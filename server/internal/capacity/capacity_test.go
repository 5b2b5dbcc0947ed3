package capacity

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGauge_CountsWhatIsBesidesTheState: what two collections in a row find in use besides the
// state, as it was then, lessens what a server can hold. What only one of them finds does not.
func TestGauge_CountsWhatIsBesidesTheState(t *testing.T) {
	g := &Gauge{Allowed: 1000}
	if a := g.Measure(); a != (Ability{Weight: 1000, Cause: Memory}) {
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
		if a := g.Measure(); a != (Ability{Weight: c.want, Cause: Memory}) {
			t.Errorf("%d: %+v, want %d", i, a, c.want)
		}
	}
	if a := (&Gauge{Allowed: 1}).Measure(); a != (Ability{Weight: 1, Cause: Memory}) {
		t.Errorf("a byte is allowed: %+v", a)
	}
	none := &Gauge{}
	if none.Collected(5, Usage{Live: 100}); none.Measure() != (Ability{}) {
		t.Errorf("without a bound: %+v", none.Measure())
	}
}

// A checkpoint takes up to twice the weight of the state. A disk without room can hold a byte: 0
// would mean no limit.
func TestOnDisk(t *testing.T) {
	for bytes, want := range map[int64]Ability{
		1400:          {Weight: 700, Cause: Disk},
		1:             {Weight: 1, Cause: Disk},
		-900:          {Weight: 1, Cause: Disk},
		math.MaxInt64: {},
	} {
		if a := OnDisk(bytes); a != want {
			t.Errorf("%d: %+v, want %+v", bytes, a, want)
		}
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
		members, voter := uint64(3), uint64(9) // whose disk holds anything
		isMember := func(id uint64) bool { return id <= members || id == voter }
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
				b.Note(id, Report{Ability: a})
			}
			b.Note(voter, Report{})
			weight := rapid.Int64Range(0, 1000).Draw(t, "state")
			was := now
			next, propose := b.Propose(now, weight, []uint64{voter}, nil, isMember)
			if !propose && next != now {
				t.Fatalf("%+v becomes %+v without a proposal", now, next)
			}
			now = next
			if again, propose := b.Propose(now, weight, []uint64{voter}, nil, isMember); propose {
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

// TestBoard_MajorityOfDisks: with automatic reserves, whatever the leader, the disks of a majority
// of the voters, all of them connected, can hold the limit within a hundredth: when the state is as
// large, members with smaller disks may stop, and the others go on. The limit is no lower than that
// demands, so the disks of a minority do not decide, nor do those of other members. A new leader
// does not raise the limit before a majority has said that it can hold more.
func TestBoard_MajorityOfDisks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		voters := uint64(rapid.IntRange(1, 6).Draw(t, "voters"))
		var b Board
		var now Ability
		var all, away []uint64
		for id := range voters {
			all = append(all, id+1)
		}
		reported := make(map[uint64]Ability)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // another leader
				b, reported = Board{}, make(map[uint64]Ability)
			case 1:
				away = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, int(voters-1)/2, rapid.ID).Draw(t, "away")
			case 2: // all report
				for _, id := range all {
					reported[id] = Ability{Weight: rapid.Int64Range(1, 1000).Draw(t, "weight"), Cause: Disk, Member: uint8(id)}
					b.Note(id, Report{Disk: reported[id]})
				}
			default:
				id := rapid.Uint64Range(1, voters+2).Draw(t, "member") // some have no vote
				a := Ability{Weight: rapid.Int64Range(1, 1000).Draw(t, "weight"), Cause: Disk, Member: uint8(id)}
				if rapid.IntRange(0, 3).Draw(t, "any weight") == 0 {
					a = Ability{Member: uint8(id)}
				}
				reported[id] = a
				b.Note(id, Report{Disk: a})
			}
			weight := rapid.Int64Range(0, 1000).Draw(t, "state")
			was := now
			next, propose := b.Propose(now, weight, all, away, func(id uint64) bool { return id != 0 })
			if !propose && next != now {
				t.Fatalf("%+v becomes %+v without a proposal", now, next)
			}
			now = next
			var unheard, able int      // connected voters; able to hold a limit that has risen
			var unable, less, more int // voters that hold nothing, less than now, and more
			rises := was.Weight != 0 && (now.Weight == 0 || now.Weight > was.Weight)
			for _, id := range all {
				a, heard := reported[id]
				if heard && !slices.Contains(away, id) && (a.Cause == Nothing || a.Weight >= max(now.Weight, was.Weight)) {
					able++
				}
				switch {
				case slices.Contains(away, id):
					unable++
				case !heard:
					unheard++
				case a.Cause == Nothing || now.Weight != 0 && a.Weight > now.Weight+now.Weight/100+1:
					more++
				case !a.Counts(weight), now.Weight != 0 && a.Weight >= now.Weight-now.Weight/100-1:
				default:
					less++
				}
			}
			majority := len(all)/2 + 1
			switch {
			case unable+less > len(all)-majority:
				t.Fatalf("the limit is %+v at %d, of %d voters %d are away and %d can hold less", now, weight, voters, unable, less)
			case rises && (now.Weight != 0 || weight > was.Weight/8) && able < majority:
				t.Fatalf("%+v becomes %+v at %d, and %d of %d voters have said that they can hold that", was, now, weight, able, voters)
			case now.Weight != 0 && unheard == 0 && more >= majority:
				t.Fatalf("the limit is %+v, %d of %d voters can hold more", now, more, voters)
			case now.Weight != 0 && (now.Cause != Disk || now.Member != 0 && voters > 1):
				t.Fatalf("the limit is %+v, which one member decides", now)
			}
		}
	})
}

// The disks of a majority of the voters decide, and a disk with a configured reserve decides alone.
func TestBoard_DisksThatDecide(t *testing.T) {
	disk := func(weight int64, member uint8) Ability { return Ability{weight, Disk, member} }
	three := []uint64{1, 2, 3}
	for _, tc := range []struct {
		what    string
		voters  []uint64
		away    []uint64
		now     Ability
		alone   Ability // configured
		reports []Ability
		want    Ability
	}{
		{"standalone", []uint64{1}, nil, Ability{}, Ability{}, []Ability{disk(500, 1)}, disk(500, 1)},
		{"one of two", []uint64{1, 2}, nil, Ability{}, Ability{}, []Ability{{}, disk(500, 2)}, disk(500, 0)},
		{"one of three", three, nil, Ability{}, Ability{}, []Ability{{}, disk(1, 2), {}}, Ability{}},
		{"two of three", three, nil, Ability{}, Ability{}, []Ability{disk(400, 1), disk(500, 2), {}}, disk(500, 0)},
		{"all three", three, nil, Ability{}, Ability{}, []Ability{disk(400, 1), disk(600, 2), disk(500, 3)}, disk(500, 0)},
		{"two of four", []uint64{1, 2, 3, 4}, nil, Ability{}, Ability{}, []Ability{disk(400, 1), disk(500, 2), {}, {}}, disk(500, 0)},
		{"one of three, another is away", three, []uint64{3}, Ability{}, Ability{}, []Ability{{}, disk(500, 2), {}}, disk(500, 0)},
		{"the one that is away", three, []uint64{2}, Ability{}, Ability{}, []Ability{{}, disk(500, 2), {}}, Ability{}},
		{"observers", three, nil, Ability{}, Ability{}, []Ability{{}, {}, {}, disk(1, 4), disk(1, 5)}, Ability{}},
		{"a configured reserve", three, nil, Ability{}, disk(300, 3), []Ability{disk(400, 1), disk(500, 2)}, disk(300, 3)},
		{"a new leader knows one disk", three, nil, disk(500, 0), Ability{}, []Ability{disk(800, 1), disk(700, 2)}, disk(700, 0)},
		{"a new leader knows itself", three, nil, disk(500, 0), Ability{}, []Ability{{}}, disk(500, 0)},
		{"a full disk is away, and a new leader", three, []uint64{2}, disk(500, 0), Ability{}, []Ability{disk(800, 1)}, disk(500, 0)},
		{"a full disk is away, the others have room", three, []uint64{3}, disk(500, 0), Ability{}, []Ability{{}, {}}, Ability{}},
		{"no majority is there", three, []uint64{2, 3}, disk(500, 0), Ability{}, []Ability{disk(1, 1)}, disk(500, 0)},
		{"a majority instead of one", three, nil, disk(500, 3), Ability{}, []Ability{disk(500, 1), disk(500, 2), disk(500, 3)}, disk(500, 0)},
		{"one instead of a majority", three, nil, disk(500, 0), disk(499, 3), []Ability{disk(500, 1), disk(500, 2)}, disk(499, 3)},
	} {
		var b Board
		for i, a := range tc.reports {
			r := Report{Disk: Ability{Weight: a.Weight, Cause: a.Cause}}
			b.Note(uint64(i+1), r)
		}
		if m := uint64(tc.alone.Member); m != 0 {
			b.Note(m, Report{Ability: tc.alone})
		}
		if got, _ := b.Propose(tc.now, 900, tc.voters, tc.away, func(id uint64) bool { return id != 0 }); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, got, tc.want)
		}
	}
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
			b.Note(uint64(a.Member), Report{Ability: Ability{Weight: a.Weight, Cause: a.Cause}})
		}
		got, propose := b.Propose(tc.now, tc.weight, []uint64{7}, nil, func(id uint64) bool { return id < 9 })
		if got != tc.want || propose != tc.propose {
			t.Errorf("%s: %+v, %v, want %+v, %v", tc.what, got, propose, tc.want, tc.propose)
		}
		if _, stays := b.reports[9]; stays {
			t.Errorf("%s: the report of a stranger stays", tc.what)
		}
	}
}
