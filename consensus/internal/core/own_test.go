package core

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Of two positions in a stream, that of the later incarnation counts, then the greater number.
func TestStreams_Later(t *testing.T) {
	for _, tc := range []struct{ a, b, want StreamPosition }{
		{StreamPosition{2, 5}, StreamPosition{1, 9}, StreamPosition{2, 5}},
		{StreamPosition{1, 9}, StreamPosition{2, 5}, StreamPosition{2, 5}},
		{StreamPosition{2, 5}, StreamPosition{2, 6}, StreamPosition{2, 6}},
		{StreamPosition{2, 6}, StreamPosition{2, 5}, StreamPosition{2, 6}},
	} {
		if got := later(tc.a, tc.b); got != tc.want {
			t.Errorf("of %v and %v %v counts", tc.a, tc.b, got)
		}
	}
}

// What is in the log already is cut off a run, and a run after a gap is dropped.
func TestCore_TrimsKnownRequests(t *testing.T) {
	c := newFollower(t)
	c.streams[9] = StreamPosition{4, 10}
	for _, tc := range []struct {
		incarnation, first uint64
		n                  int
		want               string
	}{
		{4, 11, 2, "11 [0 1]"}, {4, 10, 3, "11 [1 2]"}, {4, 9, 2, ""}, {4, 12, 2, ""}, {3, 11, 2, ""}, {3, 1, 2, ""}, {5, 1, 2, "1 [0 1]"}, {5, 2, 2, ""},
	} {
		g := RequestRun{Server: 9, Incarnation: tc.incarnation, First: tc.first}
		for i := range tc.n {
			g.Payloads = append(g.Payloads, fmt.Append(nil, i))
		}
		got := ""
		if c.trimKnown(&g, nil) {
			got = fmt.Sprintf("%d %s", g.First, g.Payloads)
		}
		if got != tc.want {
			t.Errorf("%d requests from %d on of incarnation %d: %q, want %q", tc.n, tc.first, tc.incarnation, got, tc.want)
		}
	}
}

// Requests that are not applied go out again: after a time that doubles, with another incarnation,
// and after a checkpoint that does not contain them.
func TestOwnStream_Resends(t *testing.T) {
	c := newFollower(t)
	o := &c.own
	o.incarnation = 5
	for i := range 4 {
		c.Propose([]byte{byte(i)}, i)
	}
	o.firstSeen, o.retryAfter = o.first, ElectionTicks
	for _, wait := range []int{ElectionTicks, 2 * ElectionTicks, 4 * ElectionTicks, 8 * ElectionTicks, 16 * ElectionTicks, 16 * ElectionTicks} {
		o.sent, o.logged = 3, 0
		resent := o.resent
		for range wait - 1 {
			c.tickStreams()
		}
		if o.sent == 0 {
			t.Errorf("sent again before %d ticks have passed", wait)
		}
		if c.tickStreams(); o.sent != 0 || o.idle != 0 || o.resent != resent+3 {
			t.Errorf("after %d ticks: %d are under way, %d ticks idle, %d were sent again", wait, o.sent, o.idle, o.resent-resent)
		}
	}
	for what, do := range map[string]func(){
		"progress": func() { o.sent, o.firstSeen = 3, 0 }, "nothing under way": func() { o.sent, o.firstSeen = 0, o.first },
		"leadership": func() { o.sent, o.firstSeen, c.role = 3, o.first, raft.StateLeader },
	} {
		o.idle, o.retryAfter, c.role = 7, 99, raft.StateFollower
		if do(); true {
			c.tickStreams()
		}
		if o.idle != 0 || o.retryAfter != ElectionTicks || o.firstSeen != o.first {
			t.Errorf("%s: %d ticks idle, again after %d", what, o.idle, o.retryAfter)
		}
	}
	for range 2 * ElectionTicks { // what is in the leader's log is not sent again
		o.sent, o.logged = 3, o.first
		if c.tickStreams(); o.sent != 3 || o.idle != 0 || o.retryAfter != ElectionTicks {
			t.Fatalf("%d are under way, %d ticks idle", o.sent, o.idle)
		}
	}
	if c.leadershipChanged(); o.sent != 0 || o.logged != 0 {
		t.Errorf("another leader: %d are under way, up to %d are in its log", o.sent, o.logged)
	}
	o.sent = 3
	if ref := o.take(1); ref != 0 || o.sent != 2 || o.first != 2 {
		t.Errorf("the first is %v, %d are under way", ref, o.sent)
	}
	if ref := o.take(1); ref != nil || o.first != 2 {
		t.Error("a request is taken twice")
	}
	if lost := o.dropApplied(StreamPosition{5, 2}); !slices.Equal(lost, []any{1}) || o.sent != 0 || o.first != 3 {
		t.Errorf("a checkpoint drops %v, %d are under way", lost, o.sent)
	}
	o.sent = 2
	if lost := o.dropApplied(StreamPosition{5, 99}); len(lost) != 2 || len(o.pending) != 0 {
		t.Errorf("a checkpoint drops %v, %d are left", lost, len(o.pending))
	}
	c.Propose([]byte{9}, 9)
	o.sent = 1
	if o.renumber(8); o.incarnation != 8 || o.first != 1 || o.sent != 0 {
		t.Errorf("%+v", o)
	}
}

// A leader empties requests that the state machine does not understand, of its own and of others,
// and counts what it proposes.
func TestProposer_RefusesInvalid(t *testing.T) {
	l, _ := newLeader(t, 1, 0)
	c := l.core
	c.proposer.validate = func(p []byte) error {
		if p[0] == 'x' {
			return errBadMessage
		}
		return nil
	}
	c.Propose([]byte("x own"), "own")
	c.Propose([]byte("own"), "own 2")
	g := &RequestRun{Server: 9, Incarnation: 1, First: 1, Payloads: [][]byte{[]byte("x other"), []byte("other")}}
	if err := c.Step(&Message{From: 9, Forward: g}); err != nil {
		t.Fatal(err)
	}
	before := c.Proposed()
	var got []string
	for range 3 {
		out, err := c.Ready(l.w.nowMs)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range out.Batches {
			for _, r := range b.Requests {
				got = append(got, string(r.Payload))
			}
		}
		if n := c.Proposed() - before; n != 4 {
			t.Errorf("%d requests were proposed", n)
		}
		if c.proposer.incoming != nil || c.proposer.heads[9] != (StreamPosition{1, 2}) {
			t.Errorf("%v wait, up to %v is known", c.proposer.incoming, c.proposer.heads[9])
		}
		l.queue = append(l.queue, out.Appends...)
		l.write(len(l.queue))
	}
	if want := []string{"", "own", "", "other"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if string(g.Payloads[0]) != "x other" {
		t.Error("the message of the other member was changed")
	}
	g.Payloads = slices.Repeat(g.Payloads[:1], 1000)
	if n := testing.AllocsPerRun(1, func() { run := *g; c.refuseInvalid(&run) }); n > 100 {
		t.Errorf("%v allocations to refuse 1000 requests", n)
	}
}

// countingLogger counts the errors that are logged.
type countingLogger struct {
	raft.Logger
	errors int
}

func (l *countingLogger) Errorf(string, ...any) { l.errors++ }

// A member that sends nonsense does not fill the disk with log lines.
func TestRefused_Logs(t *testing.T) {
	l, others := newLeader(t, 2, 0)
	c := l.core
	c.proposer.validate = func([]byte) error { return errBadMessage }
	for what, refuse := range map[string]func(){
		"messages": func() { c.refuse(&raftpb.Message{From: &others[0]}, "nonsense") },
		"requests": func() { c.refuseInvalid(&RequestRun{Server: others[0], Payloads: [][]byte{nil}}) },
	} {
		lines := &countingLogger{Logger: quiet}
		c.logger = lines
		for i, want := range []int{1, 2, 2, 3, 3, 3, 3, 4, 4} {
			if refuse(); lines.errors != want {
				t.Errorf("%d %s: %d lines, want %d", i+1, what, lines.errors, want)
			}
		}
	}
}

// What a leader proposes after it has lost its leadership, or while it hands it over, is not
// counted, not under way, and not sent by raft, which knows no streams.
func TestProposer_NoLongerLeads(t *testing.T) {
	for what, do := range map[string]func(l *member, other uint64){
		"another leads": func(l *member, other uint64) {
			r := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: &l.id, From: &other, Term: new(l.core.raftTerm + 1)}
			if err := l.core.Step(&Message{To: l.id, From: other, Raft: r}); err != nil {
				t.Fatal(err)
			}
		},
		"it hands over": func(l *member, other uint64) { l.core.HandOver(other) },
	} {
		l, others := newLeader(t, 3, 0)
		before := l.core.Proposed()
		do(l, others[0])
		l.propose()
		out, err := l.core.Ready(l.w.nowMs)
		if err != nil || l.core.Proposed() != before || l.core.proposer.inFlight != 0 {
			t.Errorf("%s: %v, %d requests are counted, %d entries under way", what, err, l.core.Proposed()-before, l.core.proposer.inFlight)
		}
		for _, m := range out.Messages {
			if m.Raft.GetType() == raftpb.MsgProp {
				t.Errorf("%s: raft sends %v", what, m.Raft)
			}
		}
	}
}

// A leader that is removed no longer leads.
func TestStanding_RemovedLeader(t *testing.T) {
	l, _ := newLeader(t, 3, 0)
	if err := l.core.raft.ProposeConfChange(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeRemoveNode, l.id)}}); err != nil {
		t.Fatal(err)
	}
	l.w.calm(func() bool { return !l.core.inConf(l.id) })
	if l.pump(); l.core.role == raft.StateLeader {
		t.Error("it leads")
	}
}

// Raft sees the messages that it can answer. An answer of a member that is none, which is late, is
// no error.
func TestStanding_Feeds(t *testing.T) {
	l, _ := newLeader(t, 3, 0)
	late := &raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), To: &l.id, From: new(uint64(99)), Term: &l.core.raftTerm}
	if err := l.core.feed(late); err != nil {
		t.Error(err)
	}
	if err := l.core.feed(&raftpb.Message{Type: raftpb.MsgHup.Enum(), To: &l.id, From: new(uint64(2))}); err == nil {
		t.Error("an error of raft is lost")
	}
	outdated := newFollower(t)
	outdated.proof = "proof"
	beat := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: &outdated.id, From: new(uint64(4)), Term: new(uint64(9))}
	if err := outdated.feed(beat); err != nil || outdated.raft.BasicStatus().HardState.GetTerm() == 9 {
		t.Error("the raft of an outdated member gets a message", err)
	}
}

// A member without a part in the ensemble appends what follows on the entries that it has applied,
// and commits it.
func TestStanding_Follows(t *testing.T) {
	for _, tc := range []struct {
		what       string
		term, last uint64 // of this member; of its log afterwards
		entries    []uint64
	}{
		{"nothing", 1, 1, nil}, {"the next entry", 1, 2, []uint64{2}}, {"the next entries", 1, 3, []uint64{2, 3}},
		{"an entry that was applied", 1, 1, []uint64{1}}, {"also an entry that was applied", 1, 3, []uint64{1, 2, 3}},
		{"entries after a gap", 1, 1, []uint64{3, 4}}, {"entries of an earlier term than its own", 6, 3, []uint64{2, 3}},
	} {
		m := newWorld(t, 1, 3).members[0]
		m.state.Term = tc.term
		m.start()
		m.pump()
		var entries []*raftpb.Entry
		for _, index := range tc.entries {
			entries = append(entries, &raftpb.Entry{Index: &index, Term: new(uint64(4)), Type: raftpb.EntryNormal.Enum()})
		}
		if err := m.core.Follow(entries); err != nil {
			t.Fatal(tc.what, err)
		}
		term := tc.term
		if tc.last > 1 {
			term = max(term, 4)
		}
		if s := m.core.raft.BasicStatus(); s.HardState.GetCommit() != tc.last || s.HardState.GetTerm() != term || s.Lead != raft.None {
			t.Errorf("%s: %+v, want %+v", tc.what, s, tc)
		}
	}
}

// A member knows where its log ends, at the start and after each append, and who belongs to a
// configuration that is being left.
func TestStanding_Knows(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := w.members[0]
	m.disk = []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}, {Index: new(uint64(3)), Term: new(uint64(1))}}
	if m.start(); m.core.last != 3 {
		t.Errorf("the log ends at entry %d", m.core.last)
	}
	m.core.noteAppend(&raftpb.Message{Entries: []*raftpb.Entry{{Index: new(uint64(8))}, {Index: new(uint64(9))}}})
	if m.core.last != 9 {
		t.Errorf("after an append the log ends at entry %d", m.core.last)
	}
	if m.core.noteAppend(&raftpb.Message{Snapshot: Snapshot(70, 2, m.core.conf)}); m.core.last != 70 {
		t.Errorf("after a checkpoint the log ends at entry %d", m.core.last)
	}
	m.core.conf = &raftpb.ConfState{Voters: []uint64{1}, Learners: []uint64{2}, VotersOutgoing: []uint64{3}}
	for id, want := range map[uint64]bool{1: true, 2: true, 3: true, 4: false} {
		if m.core.inConf(id) != want {
			t.Errorf("member %d belongs to the configuration: want %v", id, want)
		}
	}
}
