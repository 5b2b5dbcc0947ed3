package core

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// newRelays returns the relaying of a member of an ensemble with the voters 1 to 3, of which 1
// leads, and the learners 4 and 5, all of them connected. Its log has the entries 1 to 20, of which
// 10 are applied, each with ten bytes.
func newRelays(t *testing.T, id uint64) *Relays {
	t.Helper()
	m := &raftState{
		id: id, leader: 1, raftTerm: 2, appliedTerm: 2, applied: 10, storage: raft.NewMemoryStorage(), connected: map[uint64]connection{},
		conf: &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{4, 5}},
	}
	for id := range uint64(5) {
		m.connected[id+1] = connectionUp
	}
	for i := range uint64(20) {
		if err := m.storage.Append([]*raftpb.Entry{{Index: new(i + 1), Term: new(uint64(2)), Data: make([]byte, 10)}}); err != nil {
			t.Fatal(err)
		}
	}
	return &Relays{raftState: m, stall: &LogStall{raftState: m}, wanted: true, leases: map[uint64]*relayLease{}}
}

// A learner chooses a connected voter that does not lead, learners with consecutive ids different
// ones, and leaves a relay that is silent or cannot relay any longer.
func TestRelays_Choose(t *testing.T) {
	for _, tc := range []struct {
		what string
		id   uint64
		do   func(rel *Relays)
		want uint64
	}{
		{"learner 4", 4, nil, 2},
		{"learner 5", 5, nil, 3},
		{"one was of no use", 4, func(rel *Relays) { rel.source.skipped = 1 }, 3},
		{"two were of no use", 4, func(rel *Relays) { rel.source.skipped = 2 }, 2},
		{"another leader", 5, func(rel *Relays) { rel.leader = 3 }, 2},
		{"a voter is not connected", 4, func(rel *Relays) { delete(rel.connected, 2) }, 3},
		{"nobody is connected", 4, func(rel *Relays) { clear(rel.connected) }, 0},
		{"not wanted", 4, func(rel *Relays) { rel.wanted = false }, 0},
		{"a voter", 2, nil, 0},
		{"behind the first entry of the term", 4, func(rel *Relays) { rel.appliedTerm = 1 }, 0},
		{"no leader", 4, func(rel *Relays) { rel.leader = raft.None }, 0},
		{"fresh", 4, func(rel *Relays) { rel.fresh = true }, 0},
		{"outdated", 4, func(rel *Relays) { rel.proof = "proof" }, 0},
		{"it has one", 4, func(rel *Relays) { rel.source.id = 3 }, 3},
		{"it has one that was heard long ago", 4, func(rel *Relays) { rel.source.id, rel.source.silence = 3, relayPatience-1 }, 3},
		{"it has one that is silent", 4, func(rel *Relays) { rel.source.id, rel.source.silence = 2, relayPatience }, 3},
		{"it has one that leads now", 4, func(rel *Relays) { rel.source.id = 1 }, 3},
		{"it has one that is not connected", 4, func(rel *Relays) { rel.source.id = 2; delete(rel.connected, 2) }, 3},
		{"it has one that is no voter", 4, func(rel *Relays) { rel.source.id = 5 }, 3},
		{"it has become a voter", 4, func(rel *Relays) { rel.source.id, rel.conf = 3, &raftpb.ConfState{Voters: []uint64{1, 2, 3, 4}} }, 0},
	} {
		rel := newRelays(t, tc.id)
		if tc.do != nil {
			tc.do(rel)
		}
		before := rel.source
		rel.tick()
		s := rel.source
		if s.id != tc.want {
			t.Errorf("%s: relay %d, want %d", tc.what, s.id, tc.want)
		}
		switch left := before.id != 0 && before.id != s.id; {
		case left != (s.skipped > before.skipped) || s.lost:
			t.Errorf("%s: %+v", tc.what, s)
		case s.id != 0 && before.id == s.id && (s.silence != before.silence+1 || s.age != 1 || s.since != 1):
			t.Errorf("%s: %+v", tc.what, s)
		case s.id != 0 && before.id != s.id && s.silence != 0 || !s.due:
			t.Errorf("%s: %+v", tc.what, s)
		}
	}
	rel := newRelays(t, 4)
	rel.source = relaySource{id: 2, active: true, silence: relayPatience, reported: 9}
	if rel.tick(); !rel.source.lost || rel.source.active || rel.source.reported != 0 {
		t.Errorf("an active relay is silent: %+v", rel.source)
	}
	rel.unreachable(2)
	if rel.source.id != 3 || rel.Source() != 0 {
		t.Errorf("another voter is unreachable: %+v", rel.source)
	}
	rel.source.active = true
	if rel.Source() != 3 || rel.idle() {
		t.Errorf("the source is %d, idle %v", rel.Source(), rel.idle())
	}
	rel.unreachable(3)
	if rel.source.id != 0 || !rel.source.lost || rel.Source() != 0 {
		t.Errorf("the relay is unreachable: %+v", rel.source)
	}
	rel.tick()
	rel.unreachable(rel.source.id)
	if rel.source.id != 0 || !rel.source.lost {
		t.Errorf("the next is unreachable, and the leader was not told of the first: %+v", rel.source)
	}
	rel.leases[5], rel.feeds = &relayLease{}, make([]*relayFeed, 1)
	rel.source = relaySource{id: 3, active: true, skipped: 2, lost: true, silence: 3}
	rel.leadershipChanged()
	if rel.source != (relaySource{id: 3, skipped: 2}) || len(rel.leases)+len(rel.feeds) > 0 {
		t.Errorf("another leader: %+v", rel)
	}
}

// A learner reports what it has applied, at most once per tick, to its relay and to the leader,
// which learns whether the relay sends entries.
func TestRelays_Report(t *testing.T) {
	for _, tc := range []struct {
		what    string
		source  relaySource
		do      func(rel *Relays)
		want    string
		waiting bool // what is to be reported stays so
	}{
		{"nothing", relaySource{due: true}, nil, "[]", true},
		{"asks", relaySource{id: 2, due: true}, nil, "[2 [1]]", false},
		{"has a relay", relaySource{id: 2, due: true, active: true}, nil, "[2 [1] 1 [1]]", false},
		{
			"a message of the relay arrives",
			relaySource{id: 2, due: true, active: true, arriving: true}, nil, "[2 [1 1] 1 [1 1]]", false,
		},
		{"its first message arrives", relaySource{id: 2, due: true, arriving: true}, nil, "[2 [1 1]]", false},
		{"has lost it", relaySource{due: true, lost: true}, nil, "[1 [0]]", false},
		{"has lost it and asks another", relaySource{id: 3, due: true, lost: true}, nil, "[3 [1] 1 [0]]", false},
		{"has lost one and has another", relaySource{id: 3, due: true, lost: true, active: true}, nil, "[3 [1] 1 [1]]", false},
		{"not due", relaySource{id: 2, active: true}, nil, "[]", true},
		{"not current", relaySource{id: 2, due: true}, func(rel *Relays) { rel.appliedTerm = 1 }, "[]", true},
		{"no progress", relaySource{id: 2, due: true, reported: 10, age: reportTicks - 1}, nil, "[]", true},
		{"no progress for long", relaySource{id: 2, due: true, reported: 10, age: reportTicks}, nil, "[2 [1]]", false},
		{"no progress, and lost", relaySource{id: 2, due: true, reported: 10, lost: true}, nil, "[2 [1] 1 [0]]", false},
	} {
		rel := newRelays(t, 4)
		rel.source = tc.source
		if tc.do != nil {
			tc.do(rel)
		}
		var out Output
		rel.report(&out)
		sent := []any{}
		for _, m := range out.Messages {
			sent = append(sent, m.To, m.Raft.GetContext())
			if r := m.Raft; m.From != 4 || r.GetFrom() != 4 || r.GetTo() != m.To || r.GetType() != raftpb.MsgAppResp || r.GetTerm() != 2 || r.GetIndex() != 10 {
				t.Errorf("%s: %v", tc.what, m)
			}
		}
		if got := fmt.Sprint(sent); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
		if s := rel.source; tc.waiting && s != tc.source || !tc.waiting && (s.due || s.age != 0 || s.reported != 10 || s.lost && !s.active) {
			t.Errorf("%s: %+v", tc.what, s)
		}
	}
}

// The answer to an append of the relay is left out, because a report takes its place.
func TestRelays_Withheld(t *testing.T) {
	for _, tc := range []struct {
		active      bool
		typ         raftpb.MessageType
		term, index uint64
		want        bool
	}{
		{true, raftpb.MsgAppResp, 2, 15, true}, {true, raftpb.MsgAppResp, 2, 14, true}, {true, raftpb.MsgAppResp, 2, 16, false},
		{false, raftpb.MsgAppResp, 2, 15, false}, {true, raftpb.MsgHeartbeatResp, 2, 15, false}, {true, raftpb.MsgAppResp, 1, 15, false}, {true, raftpb.MsgAppResp, 3, 15, false},
	} {
		rel := newRelays(t, 4)
		rel.source = relaySource{id: 2, active: tc.active, last: 15}
		if got := rel.Withheld(&raftpb.Message{Type: &tc.typ, Term: &tc.term, Index: &tc.index}); got != tc.want {
			t.Errorf("%+v: withheld %v", tc, got)
		}
	}
}

// Raft sees an append of the relay as one of the leader, and nobody else's. The leader's own
// appends end the relaying, if they still come long after it has begun.
func TestRelays_Appends(t *testing.T) {
	for _, tc := range []struct {
		what       string
		from, term uint64
		do         func(rel *Relays)
		want       bool
	}{
		{"the relay", 2, 2, nil, true},
		{"another voter", 3, 2, nil, false},
		{"an earlier term", 2, 1, nil, false},
		{"a later term", 2, 3, nil, false},
		{"no leader is known", 2, 2, func(rel *Relays) { rel.leader = raft.None }, false},
		{"to a leader", 2, 2, func(rel *Relays) { rel.role = raft.StateLeader }, false},
		{"no relay was chosen", 0, 2, func(rel *Relays) { rel.source.id = 0 }, false},
	} {
		rel := newRelays(t, 4)
		rel.source = relaySource{id: 2, silence: 3, since: 9, last: 4}
		if tc.do != nil {
			tc.do(rel)
		}
		before := rel.source
		for round := range 2 {
			entries := make([]*raftpb.Entry, 3-2*round)
			r := rel.step(&raftpb.Message{
				Type: raftpb.MsgApp.Enum(), To: new(uint64(4)), From: &tc.from, Term: &tc.term, Index: new(uint64(8)), LogTerm: new(uint64(7)), Commit: new(uint64(6)),
				Entries: entries, Context: []byte{relayed},
			})
			if (r != nil) != tc.want {
				t.Fatalf("%s: %v", tc.what, r)
			}
			if !tc.want {
				if rel.source != before {
					t.Errorf("%s: %+v", tc.what, rel.source)
				}
				continue
			}
			if r.GetFrom() != 1 || r.GetTo() != 4 || r.GetTerm() != 2 || r.GetIndex() != 8 || r.GetLogTerm() != 7 || r.GetCommit() != 6 || len(r.GetEntries()) != len(entries) || len(r.GetContext()) > 0 || r.GetType() != raftpb.MsgApp {
				t.Errorf("%s: %v", tc.what, r)
			}
			if s := rel.source; !s.active || s.silence != 0 || s.since != 5*round || s.last != 11 {
				t.Errorf("%s: %+v", tc.what, s)
			}
			rel.source.since, rel.source.silence = 5, 2
		}
	}
	for _, tc := range []struct {
		active         bool
		since, entries int
		want           bool // the relay is given up
	}{{true, 2*ElectionTicks + 1, 1, true}, {true, 2 * ElectionTicks, 1, false}, {true, 2*ElectionTicks + 1, 0, false}, {false, 2*ElectionTicks + 1, 1, false}} {
		rel := newRelays(t, 4)
		rel.source = relaySource{id: 2, active: tc.active, since: tc.since}
		r := &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(1)), Term: new(uint64(2)), Entries: make([]*raftpb.Entry, tc.entries)}
		if rel.step(r) != r || (rel.source.id == 0) != tc.want {
			t.Errorf("%+v: %+v", tc, rel.source)
		}
	}
}

// A voter that has applied an entry of the term sends a learner that asks it the entries that it
// has applied, and the leader notes who has a relay.
func TestRelays_Requests(t *testing.T) {
	for _, tc := range []struct {
		what             string
		from, term, have uint64
		context          []byte
		do               func(rel *Relays)
		feeds, leases    int
	}{
		{"a learner asks", 4, 2, 7, []byte{relayed}, nil, 1, 0},
		{"a learner gives up", 4, 2, 7, []byte{unrelayed}, nil, 1, 0},
		{"an answer to the leader", 4, 2, 7, nil, nil, 0, 0},
		{"a voter asks", 3, 2, 7, []byte{relayed}, nil, 0, 0},
		{"an earlier term", 4, 1, 7, []byte{relayed}, nil, 0, 0},
		{"a learner without entries", 4, 2, 0, []byte{relayed}, nil, 0, 0},
		{"of a learner", 4, 2, 7, []byte{relayed}, func(rel *Relays) { rel.id = 5 }, 0, 0},
		{"behind the first entry of the term", 4, 2, 7, []byte{relayed}, func(rel *Relays) { rel.appliedTerm = 1 }, 0, 0},
		{"its log hangs", 4, 2, 7, []byte{relayed}, func(rel *Relays) { rel.stall.Set(true) }, 0, 0},
		{"to the leader", 4, 2, 7, []byte{relayed}, func(rel *Relays) { rel.id, rel.role = 1, raft.StateLeader }, 0, 1},
		{"the leader is told that the relay is lost", 4, 2, 7, []byte{unrelayed}, func(rel *Relays) { rel.id, rel.role = 1, raft.StateLeader }, 0, 0},
	} {
		rel := newRelays(t, 2)
		if tc.do != nil {
			tc.do(rel)
		}
		r := &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: &tc.from, Term: &tc.term, Index: &tc.have, Context: tc.context}
		if got := rel.step(r); got != r || len(rel.feeds) != tc.feeds || len(rel.leases) != tc.leases {
			t.Errorf("%s: %d feeds, %d leases", tc.what, len(rel.feeds), len(rel.leases))
		}
		if idle := rel.idle(); idle != (tc.feeds+tc.leases == 0) {
			t.Errorf("%s: idle %v", tc.what, idle)
		}
		heartbeat := &raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: &tc.from, Term: &tc.term, Context: []byte{relayed}}
		if got := rel.step(heartbeat); got != heartbeat || len(rel.feeds) != tc.feeds {
			t.Errorf("%s: a heartbeat is taken for a request", tc.what)
		}
	}
}

// feeds returns what a relay sends, as the index before the entries, and their number.
func (rel *Relays) sends() (sent []string) {
	var out Output
	rel.feedLearners(&out)
	for _, m := range out.Messages {
		sent = append(sent, fmt.Sprintf("%d+%d to %d", m.Raft.GetIndex(), len(m.Raft.GetEntries()), m.To))
		if context := m.Raft.GetContext(); !slices.Equal(context, []byte{relayed}) {
			sent = append(sent, fmt.Sprintf("with context %x", context))
		}
	}
	return sent
}

func TestRelays_Feeds(t *testing.T) {
	const each = 10 + entryBytes
	rel := newRelays(t, 2)
	expect := func(what string, want ...string) {
		t.Helper()
		if got := rel.sends(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	request := func(learner, have uint64) *relayFeed {
		rel.feedRequested(learner, have, []byte{relayed})
		return rel.feeds[slices.IndexFunc(rel.feeds, func(f *relayFeed) bool { return f.learner == learner })]
	}
	f := request(5, 7)
	if *f != (relayFeed{learner: 5, have: 7, next: 8, mark: 7, window: relayWindow}) {
		t.Errorf("%+v", f)
	}
	expect("three entries are applied", "7+3 to 5")
	if !f.answered || f.next != 11 || f.window != relayWindow-3*each {
		t.Errorf("%+v", f)
	}
	expect("nothing is new")
	rel.applied = 11
	expect("another is applied", "10+1 to 5")
	rel.applied = 12
	expect("one more is applied", "11+1 to 5")
	request(5, 12)
	expect("it has all, and is answered", "12+0 to 5")
	rel.applied, f.window = 20, 1
	expect("the last of the window", "12+8 to 5")
	if f.next, f.window = 15, 0; true {
		expect("the window is used up")
	}
	f.mark = 99
	request(5, 13)
	expect("the window is used up, and it is answered", "14+0 to 5")
	f.mark, f.window = 14, 0
	request(5, 14)
	if f.mark != 14 || f.window != relayWindow {
		t.Errorf("what was sent has arrived: %+v", f)
	}
	expect("the window is open", "14+6 to 5")
	f.mark, f.window, f.waiting = 20, 5, relayPatience+1
	if request(5, 14); f.next != 15 || f.waiting != 0 || f.mark != 15 || f.window != maxBatchBytes {
		t.Errorf("no progress for long: %+v", f)
	}
	f.waiting, f.next = relayPatience, 18
	if request(5, 14); f.next != 18 || f.waiting != relayPatience {
		t.Errorf("no progress: %+v", f)
	}
	f.waiting = relayPatience + 1
	if rel.feedRequested(5, 14, []byte{relayed, arriving}); f.next != 18 || f.waiting != 0 {
		t.Errorf("what was sent is arriving: %+v", f)
	}
	f.waiting = relayPatience + 1
	if request(5, 15); f.next != 18 || f.waiting != 0 {
		t.Errorf("progress: %+v", f)
	}
	f.waiting, f.have, f.mark, f.window = relayPatience+1, 17, 99, 7
	if request(5, 17); f.waiting != 0 || f.window != 7 {
		t.Errorf("it has all that was sent: %+v", f)
	}
	if request(5, 30); f.next != 31 {
		t.Errorf("it is ahead: %+v", f)
	}
	expect("it is ahead", "20+0 to 5")
	request(4, 19)
	if got := rel.Learners(); !slices.Equal(got, []uint64{4, 5}) {
		t.Errorf("the learners are %v", got)
	}
	if err := rel.storage.Compact(19); err != nil {
		t.Fatal(err)
	}
	f.next, f.answered, f.window = 19, false, 0
	expect("entries of one are gone, whose window is used up", "19+1 to 4")
	request(5, 18)
	expect("entries of one are gone")
	if got := rel.Learners(); !slices.Equal(got, []uint64{4}) {
		t.Errorf("the learners are %v", got)
	}
	f = request(5, 20)
	for i := range relayPatience {
		if rel.tick(); f.silence != i+1 || f.waiting != i+1 || len(rel.feeds) != 2 {
			t.Errorf("after %d ticks: %+v, %d feeds", i+1, f, len(rel.feeds))
		}
	}
	request(4, 20)
	if rel.tick(); len(rel.feeds) != 1 || rel.feeds[0].learner != 4 {
		t.Errorf("a learner is silent, and %d are fed", len(rel.feeds))
	}
	rel.conf = &raftpb.ConfState{Voters: []uint64{1, 2, 3, 4}}
	if rel.tick(); len(rel.feeds) != 0 {
		t.Error("a voter is fed")
	}
}

// A leader withholds appends from a learner for leaseTicks after it was told of the relay, and
// refuses for a while if the relay leaves the learner behind.
func TestRelays_Leases(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	rel, learner := l.core.Relays, others[2]
	expect := func(what string, want bool) {
		t.Helper()
		if got := rel.Leased(learner); got != want {
			t.Errorf("%s: leased %v, %+v", what, got, rel.leases[learner])
		}
	}
	rel.noteLease(learner, []byte{unrelayed})
	if expect("it has no relay", false); len(rel.leases) > 0 {
		t.Error("a lease of nothing")
	}
	rel.noteLease(learner, []byte{relayed})
	expect("it has a relay", true)
	rel.noteLease(9, []byte{relayed})
	if rel.Leased(9) || rel.Leased(others[0]) {
		t.Error("the lease of a member that is no learner")
	}
	rel.noteLease(learner, []byte{unrelayed})
	expect("it has lost the relay", false)
	rel.noteLease(learner, []byte{relayed})
	expect("it has a relay again", true)
	rel.leases[learner].ticks = 1
	rel.noteLease(learner, []byte{relayed})
	for range leaseTicks - 1 {
		rel.tick()
	}
	expect("it was silent for less than leaseTicks", true)
	rel.tick()
	if expect("it is silent", false); len(rel.leases) != 0 {
		t.Errorf("%d leases", len(rel.leases))
	}

	match := uint64(0)
	l.core.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id == learner {
			match = pr.Match
		}
	})
	if match == 0 {
		t.Fatal("the leader does not know how far the learner is")
	}
	rel.noteLease(learner, []byte{relayed})
	lease := rel.leases[learner]
	lease.match, lease.goal, lease.idle, rel.applied = match-1, match+1, 5, match+3
	rel.tick()
	if want := (relayLease{ticks: leaseTicks - 1, match: match, goal: match + 3}); *lease != want {
		t.Errorf("progress: %+v, want %+v", *lease, want)
	}
	for i := range ElectionTicks {
		rel.noteLease(learner, []byte{relayed})
		rel.tick()
		if lease.idle != i+1 || lease.refused != 0 {
			t.Errorf("no progress for %d ticks: %+v", i+1, *lease)
		}
	}
	if rel.noteLease(learner, []byte{relayed, arriving}); lease.idle != 0 {
		t.Errorf("entries of the relay are arriving: %+v", *lease)
	}
	lease.idle = ElectionTicks
	rel.noteLease(learner, []byte{relayed})
	rel.tick()
	if lease.ticks != 0 || lease.refused != patienceTicks || rel.Leased(learner) {
		t.Errorf("left behind: %+v", *lease)
	}
	rel.noteLease(learner, []byte{relayed})
	if rel.Leased(learner) {
		t.Error("a relay that left its learner behind counts again at once")
	}
	for range patienceTicks - 1 {
		rel.tick()
	}
	if rel.leases[learner] == nil {
		t.Fatal("the refusal ends too early")
	}
	if rel.tick(); rel.leases[learner] != nil {
		t.Errorf("the refusal does not end: %+v", *lease)
	}
	rel.noteLease(learner, []byte{relayed})
	lease = rel.leases[learner]
	lease.match, lease.goal, lease.idle = match, match, 7
	if rel.tick(); lease.idle != 0 || lease.goal != rel.applied {
		t.Errorf("the goal is reached: %+v", *lease)
	}
	lease.ticks, lease.idle, lease.goal, lease.match = 2, ElectionTicks, match+1, match
	if rel.tick(); lease.ticks != 0 || lease.refused != patienceTicks {
		t.Errorf("left behind in the last tick of a lease: %+v", *lease)
	}
	lease.refused = 0
	rel.noteLease(learner, []byte{relayed})
	rel.conf = &raftpb.ConfState{Voters: rel.conf.GetVoters()}
	if rel.tick(); len(rel.leases) != 0 {
		t.Error("the lease of a learner that was removed stays")
	}
}
