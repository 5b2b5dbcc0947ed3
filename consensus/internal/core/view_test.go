package core

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A member is idle if nothing waits, and quiet if there is a leader, too, and its log goes on.
func TestCore_Idle(t *testing.T) {
	for _, tc := range []struct {
		what        string
		do          func(c *Core, others []uint64)
		idle, quiet bool
	}{
		{"nothing", func(*Core, []uint64) {}, true, true},
		{"no state", func(c *Core, _ []uint64) { c.fresh = true }, false, false},
		{"outdated", func(c *Core, _ []uint64) { c.proof = "proof" }, false, false},
		{"a campaign", func(c *Core, _ []uint64) { c.Clock.campaignIn = 1 }, false, false},
		{"a slow clock", func(c *Core, _ []uint64) { c.Clock.scale.factor = 2 }, false, false},
		{"a clock that was slow", func(c *Core, _ []uint64) { c.Clock.scale.factor = 1 }, true, true},
		{"a reconfig", func(c *Core, _ []uint64) { c.Membership.changeTicks = 1 }, false, false},
		{"a transfer", func(c *Core, others []uint64) { c.Retention.TransferStarted(others[0], 1) }, false, false},
		{"a request", func(c *Core, _ []uint64) { c.own.pending = make([]pendingRequest, 1) }, false, false},
		{"a request of another", func(c *Core, _ []uint64) { c.proposer.incoming = make([]RequestRun, 1) }, false, false},
		{"a message", func(c *Core, _ []uint64) { c.outbox = make([]Message, 1) }, false, false},
		{"a read", func(c *Core, _ []uint64) { c.reads.waiting = make([]func(), 1) }, false, false},
		{"a read round", func(c *Core, _ []uint64) { c.reads.rounds[1] = nil }, false, false},
		{"an answer", func(c *Core, _ []uint64) { c.reads.confirmed = make([]confirmedReads, 1) }, false, false},
		{"a hand-over", func(c *Core, others []uint64) { c.raft.TransferLeader(others[0]) }, false, false},
		{"a hand-over of another", func(c *Core, others []uint64) { c.raft.TransferLeader(others[0]); c.role = raft.StateFollower }, true, true},
		{"no leader", func(c *Core, _ []uint64) { c.leader = raft.None }, true, false},
		{"a log that hangs", func(c *Core, _ []uint64) { c.LogStall.Set(true) }, true, false},
		{"a relay", func(c *Core, others []uint64) { c.Relays.noteLease(others[2], []byte{relayed}) }, true, false},
	} {
		l, others := newLeader(t, 4, 1)
		l.core.Clock.campaignIn = 0
		l.core.Membership.changeTicks = 0
		if tc.do(l.core, others); l.core.Idle() != tc.idle || l.core.quiet() != tc.quiet {
			t.Errorf("%s: idle %v, quiet %v", tc.what, l.core.Idle(), l.core.quiet())
		}
	}
}

// What a leader says about the other members.
func TestCore_Peers(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	c, learner := l.core, others[2]
	applied := c.applied
	c.Membership.silentTicks[others[0]] = ElectionTicks
	c.Membership.silentTicks[others[1]] = ElectionTicks + 1
	c.Relays.noteLease(learner, []byte{relayed})
	expect := func(what string, want ...PeerStatus) {
		t.Helper()
		got := c.Peers()
		slices.SortFunc(got, func(a, b PeerStatus) int { return int(a.ID) - int(b.ID) })
		slices.SortFunc(want, func(a, b PeerStatus) int { return int(a.ID) - int(b.ID) })
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\n%+v, want\n%+v", what, got, want)
		}
	}
	a := PeerStatus{ID: others[0], Active: true, Match: applied, InStep: true}
	b := PeerStatus{ID: others[1], Match: applied, InStep: true}
	d := PeerStatus{ID: learner, Active: true, Match: applied, InStep: true, Learner: true, Relayed: true}
	expect("all have all", a, b, d)
	c.applied = applied + caughtUpEntries
	a.Lag, b.Lag, d.Lag = caughtUpEntries, caughtUpEntries, caughtUpEntries
	expect("all lack a few", a, b, d)
	c.applied++
	for _, p := range []*PeerStatus{&a, &b, &d} {
		p.Lag, p.InStep = p.Lag+1, false
	}
	expect("all lack many", a, b, d)
	c.applied = applied - 1
	for _, p := range []*PeerStatus{&a, &b, &d} {
		p.Lag, p.InStep = 0, true
	}
	expect("all have more than is applied", a, b, d)
	c.raft.ReportUnreachable(others[0])
	a.InStep = false
	expect("raft does not know how far one is", a, b, d)
	if c.role = raft.StateFollower; c.Peers() != nil {
		t.Error("a follower knows about the others")
	}
	for _, tc := range []struct {
		a, b uint64
		want bool
	}{{0, 0, false}, {0, 5, false}, {5, 0, false}, {5, 5, false}, {5, 6, true}} {
		if ClustersDiffer(tc.a, tc.b) != tc.want {
			t.Errorf("%d and %d differ: %v", tc.a, tc.b, !tc.want)
		}
	}
}

// A leader may make another entry if none is under way, or if few are and the last is not too
// recent.
func TestCore_MayPropose(t *testing.T) {
	for _, tc := range []struct {
		inFlight int
		ms       int64 // since the last entry
		want     bool
	}{
		{0, 0, true}, {1, batchIntervalMs - 1, false}, {1, batchIntervalMs, true}, {1, 0, false}, {1, -1, true},
		{maxInFlight - 1, batchIntervalMs, true}, {maxInFlight, batchIntervalMs, false}, {maxInFlight, -1, false},
	} {
		c := newFollower(t)
		c.proposer.inFlight, c.proposer.lastMs = tc.inFlight, 1000
		if got := c.mayPropose(1000 + tc.ms); got != tc.want {
			t.Errorf("%d entries are under way, the last one was made %d ms ago: %v", tc.inFlight, tc.ms, got)
		}
	}
}

// An entry has as many requests as fit, of this member and of others in turn, at least one, and
// none that is in the log.
func TestCore_Drafts(t *testing.T) {
	const all, half = maxBatchBytes - requestBytes, maxBatchBytes/2 - requestBytes
	for _, tc := range []struct {
		what          string
		othersFirst   bool
		own, others   []int // sizes of requests; of others each in a run of its own
		known         uint64
		want          string // the requests of each run in the entry
		taken, passed int    // own requests and runs of others
	}{
		{"nothing", false, nil, nil, 0, "[]", 0, 0},
		{"one of each", false, []int{1}, []int{2}, 0, "[3/1 9/1]", 1, 1},
		{"others first", true, []int{1}, []int{2}, 0, "[9/1 3/1]", 1, 1},
		{"all that fits", false, []int{half, half}, []int{1}, 0, "[3/2]", 2, 0},
		{"a byte too much", false, []int{half, half + 1}, []int{half}, 0, "[3/1 9/1]", 1, 1},
		{"a byte too much of others", false, []int{half}, []int{half + 1}, 0, "[3/1]", 1, 0},
		{"just enough of others", false, []int{half}, []int{half, 0}, 0, "[3/1 9/1]", 1, 1},
		{"just enough of others first", true, []int{half}, []int{half, 0}, 0, "[9/1 9/1]", 0, 2},
		{"others first fill it", true, []int{1}, []int{all}, 0, "[9/1]", 0, 1},
		{"a large one", false, []int{2 * all, 1}, nil, 0, "[3/1]", 1, 0},
		{"a large one of others", true, []int{1}, []int{2 * all, 1}, 0, "[9/1]", 0, 1},
		{"one of others is known", false, []int{1}, []int{2, 3}, 1, "[3/1 9/1]", 1, 2},
		{"all of others are known", false, nil, []int{2, 3}, 2, "[]", 0, 2},
		{"a large one of others is known", true, []int{all}, []int{2 * all, 1}, 2, "[3/1]", 1, 2},
	} {
		c := newFollower(t)
		c.proposer.othersFirst = tc.othersFirst
		c.streams[9] = StreamPosition{1, tc.known}
		for _, n := range tc.own {
			c.Propose(make([]byte, n), nil)
		}
		for i, n := range tc.others {
			c.proposer.incoming = append(c.proposer.incoming, RequestRun{Server: 9, Incarnation: 1, First: uint64(i) + 1, Payloads: [][]byte{make([]byte, n)}})
		}
		d := c.draft()
		runs, size := []string{}, 0
		for _, g := range d.runs {
			runs = append(runs, fmt.Sprintf("%d/%d", g.Server, len(g.Payloads)))
			size += g.size()
		}
		if got := fmt.Sprint(runs); got != tc.want || d.own != tc.taken || d.incoming != tc.passed || d.size != size {
			t.Errorf("%s: %s, %d of its own, %d runs of others, %d of %d bytes; want %+v", tc.what, got, d.own, d.incoming, d.size, size, tc)
		}
		if n := uint64(len(tc.others)); tc.passed == len(tc.others) && tc.known < n && d.heads[9] != (StreamPosition{1, n}) {
			t.Errorf("%s: the stream of the others is at %v", tc.what, d.heads[9])
		}
	}
}

// A member forwards all its requests to the leader, in messages of at most an entry each, once.
func TestCore_Forwards(t *testing.T) {
	c := newFollower(t)
	c.leader = 4
	for range 3 {
		c.Propose(make([]byte, maxBatchBytes/2-requestBytes), nil)
	}
	var out Output
	for range 2 {
		c.forwardPending(&out)
	}
	var got []string
	for _, m := range out.Messages {
		got = append(got, fmt.Sprintf("%d to %d: %d from %d on of %d", m.From, m.To, len(m.Forward.Payloads), m.Forward.First, m.Forward.Incarnation))
	}
	if want := []string{"3 to 4: 2 from 1 on of 1", "3 to 4: 1 from 3 on of 1"}; !slices.Equal(got, want) || c.own.sent != 3 {
		t.Errorf("%q, want %q; %d are under way", got, want, c.own.sent)
	}
}

// The first entry of an ensemble names it, with a number that is not 0, and a large buffer is not
// kept.
func TestCore_Encodes(t *testing.T) {
	for _, cluster := range []uint64{0, 7} {
		for _, size := range []int{10, 3 * maxBatchBytes} {
			c := newFollower(t)
			c.cluster, c.random = cluster, func() uint64 { return 6 }
			d := entryDraft{runs: []RequestRun{{Server: 3, Incarnation: 1, First: 1, Payloads: [][]byte{make([]byte, size)}}}, size: size + requestBytes}
			entry := c.encode(&d, 300)
			var got []string
			ms, err := ReadBatch(entry, func(server, _, _ uint64, payload []byte) {
				got = append(got, fmt.Sprintf("%d/%d", server, len(payload)))
				if server == clusterStream && decodeCluster(payload) != 7 {
					t.Errorf("it names ensemble %d", decodeCluster(payload))
				}
			})
			want := fmt.Sprintf("3/%d", size)
			if cluster == 0 {
				want = "0/8 " + want
			}
			if fmt.Sprint(got) != "["+want+"]" || ms != 300 || err != nil {
				t.Errorf("%v at %d, %v; want %s", got, ms, err, want)
			}
			if kept := c.proposer.buf != nil; kept != (size == 10) {
				t.Errorf("a buffer of %d bytes is kept: %v", cap(entry), kept)
			}
		}
	}
}

// Nothing is in an output only if there is nothing to do.
func TestOutput_Empty(t *testing.T) {
	for i, o := range []Output{
		{}, {FirstOwn: make([]uint64, 1)}, {Appends: make([]*raftpb.Message, 1)}, {Messages: make([]Message, 1)}, {Batches: make([]Batch, 1)},
		{Reads: make([]func(), 1)}, {NeedCheckpoint: make([]uint64, 1)}, {Reconciled: make([]Reconciled, 1)}, {Form: true},
	} {
		if o.Empty() != (i < 2) {
			t.Errorf("output %d is empty: %v", i, o.Empty())
		}
	}
}
