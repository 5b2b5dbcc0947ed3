package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// world is a few cores in one goroutine, with a network that drops, delays, repeats and reorders
// messages, and disks that acknowledge late and lose unacknowledged writes. It checks C1, C2, C6
// and the guarantee of Read at every step, against the batches that were applied first.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	members []*member
	voters  int // the first members; the others do not vote
	net     []Message

	log    []Batch             // as first applied, by index; without Refs
	runs   map[string]struct{} // payloads applied
	nowMs  int64
	nReads int // reads that ran
	nLeads int // times that a member began to lead
}

// member is a core with its disk and its state machine.
type member struct {
	w    *world
	id   uint64
	core *Core

	storage *raft.MemoryStorage
	queue   []*raftpb.Message // appends that the disk has not acknowledged

	// These survive a crash.
	disk       []*raftpb.Entry // from index 2 on
	state      LogState
	checkpoint Meta   // with which the state machine starts
	applied    uint64 // index of the state machine, whose state is the world's log up to there

	proposed int  // in this incarnation
	answered int  // Refs that came back in this incarnation
	cut      bool // from the network
	slow     bool // its disk acknowledges nothing for a while
	levels   LevelRange
	memory   int64 // that the process may use; 0: much
}

func newWorld(t testing.TB, seed uint64, n int) *world { return newWorldWith(t, seed, n, 0) }

// newWorldWith makes a world of n members, of which the last do not vote, and ask for relays.
func newWorldWith(t testing.TB, seed uint64, n, learners int) *world {
	w := &world{t: t, voters: n - learners, rng: rand.New(rand.NewPCG(seed, 1)), runs: map[string]struct{}{}, nowMs: 1_000_000}
	w.log = make([]Batch, 2) // index 1 is the initial state
	conf := &raftpb.ConfState{}
	for id := uint64(1); id <= uint64(n); id++ {
		if id <= uint64(n-learners) {
			conf.Voters = append(conf.Voters, id)
		} else {
			conf.Learners = append(conf.Learners, id)
		}
	}
	for id := uint64(1); id <= uint64(n); id++ {
		m := &member{w: w, id: id, levels: LevelRange{1, SupportedLevels.Max}, state: LogState{Term: 1, Commit: 1},
			checkpoint: Meta{Member: id, Level: 1, Index: 1, Term: 1, Conf: conf, Streams: Streams{}}}
		w.members = append(w.members, m)
		m.start()
	}
	return w
}

// start brings the member up from what its disk holds.
func (m *member) start() {
	t := m.w.t
	m.storage, m.queue = raft.NewMemoryStorage(), nil
	m.state.Incarnation++
	m.state.Commit = max(m.state.Commit, m.checkpoint.Index)
	m.proposed, m.answered = 0, 0
	one := uint64(1)
	snap := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: m.checkpoint.Conf, Index: &one, Term: &one}}
	for _, err := range []error{m.storage.ApplySnapshot(snap), m.storage.SetHardState(m.state.HardState()), m.storage.Append(m.disk)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// The meta goes through its encoding, as it would through a file.
	meta, err := DecodeMeta(m.checkpoint.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	m.applied = meta.Index
	m.core, err = New(Config{
		ID: m.id, Incarnation: m.state.Incarnation, Storage: m.storage, Meta: meta, Levels: m.levels, Relayed: true, Retention: DefaultRetention(cmp.Or(m.memory, 1<<40)), Random: m.w.rng.Uint64, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// propose gives the member its next request, whose payload is its number.
func (m *member) propose() {
	m.proposed++
	name := fmt.Sprintf("%d/%d/%d", m.id, m.state.Incarnation, m.proposed)
	m.core.Propose([]byte(name), name)
}

// read requests a read. When the read runs, everything must be applied that any member had applied
// at the time of the request.
func (m *member) read() {
	want := uint64(len(m.w.log) - 1)
	m.core.Read(func() {
		m.w.nReads++
		if m.applied < want {
			m.w.t.Fatalf("member %d: a read runs at index %d, but %d was applied when it was requested", m.id, m.applied, want)
		}
	})
}

// pump carries out the core's work, except writes, which wait for write.
func (m *member) pump() {
	t := m.w.t
	for {
		role := m.core.role
		out, err := m.core.Ready(m.w.nowMs)
		if err != nil {
			t.Fatal(err)
		}
		if role != m.core.role && m.core.role == raft.StateLeader {
			m.w.nLeads++
		}
		if out.Empty() {
			return
		}
		m.queue = append(m.queue, out.Appends...)
		for _, msg := range out.Messages {
			m.w.send(msg)
		}
		for i := range out.Batches {
			m.apply(&out.Batches[i])
		}
		for _, f := range out.Reads {
			f()
		}
	}
}

// write makes the first n queued appends durable and delivers their responses.
func (m *member) write(n int) {
	var responses []*raftpb.Message
	for _, a := range m.queue[:n] {
		if a.GetSnapshot() != nil {
			m.w.t.Fatal("a snapshot, but no log was compacted")
		}
		if a.Term != nil {
			m.state.Term, m.state.Vote, m.state.Commit = a.GetTerm(), a.GetVote(), a.GetCommit()
		}
		if es := a.GetEntries(); len(es) > 0 {
			m.disk = append(m.disk[:es[0].GetIndex()-2:es[0].GetIndex()-2], es...)
			if err := m.storage.Append(es); err != nil {
				m.w.t.Fatal(err)
			}
		}
		responses = append(responses, a.GetResponses()...)
	}
	m.queue = m.queue[n:]
	for _, r := range responses {
		if m.core.Relays.Withheld(r) {
			continue
		}
		if r.GetTo() != m.id {
			m.w.send(Message{To: r.GetTo(), From: m.id, Raft: r})
		} else if err := m.core.Persisted(r); err != nil {
			m.w.t.Fatal(err)
		}
	}
}

// apply checks a batch against the world's log, which it extends if the batch is the first of its
// index.
func (m *member) apply(b *Batch) {
	w, t := m.w, m.w.t
	if b.Index != m.applied+1 {
		t.Fatalf("member %d applies entry %d after %d", m.id, b.Index, m.applied)
	}
	m.applied = b.Index
	b.Requests = slices.Clone(b.Requests) // the log keeps them
	for i := range b.Requests {
		r := &b.Requests[i]
		var server, incarnation uint64
		var number int
		if _, err := fmt.Sscanf(string(r.Payload), "%d/%d/%d", &server, &incarnation, &number); err != nil {
			t.Fatal(err)
		}
		// Refs come back in order, only at the member and in the incarnation that proposed them.
		if server == m.id && incarnation == m.state.Incarnation {
			m.answered++
			if r.Ref != string(r.Payload) || number != m.answered {
				t.Fatalf("member %d: request %s comes with ref %v as answer %d", m.id, r.Payload, r.Ref, m.answered)
			}
		} else if r.Ref != nil {
			t.Fatalf("member %d: request %s of another member comes with ref %v", m.id, r.Payload, r.Ref)
		}
		*r = Request{Payload: slices.Clone(r.Payload)}
	}
	if b.Index < uint64(len(w.log)) {
		if got, want := fmt.Sprint(*b), fmt.Sprint(w.log[b.Index]); got != want {
			t.Fatalf("member %d applies %s, another applied %s", m.id, got, want)
		}
		return
	}
	w.checkC1(b.Index)
	if last := w.log[len(w.log)-1].TimeMs; b.TimeMs < last {
		t.Fatalf("C6: entry %d has time %d after %d", b.Index, b.TimeMs, last)
	}
	for _, r := range b.Requests {
		w.checkC2(string(r.Payload))
	}
	w.log = append(w.log, *b)
}

// checkC1 checks that an applied entry is on the disks of a quorum.
func (w *world) checkC1(index uint64) {
	copies := map[string]int{}
	most := 0
	for _, m := range w.members[:w.voters] {
		if uint64(len(m.disk)) > index-2 {
			e := m.disk[index-2]
			key := fmt.Sprint(e.GetTerm(), e.GetData())
			copies[key]++
			most = max(most, copies[key])
		}
	}
	if most <= w.voters/2 {
		w.t.Fatalf("C1: entry %d is applied and on %d disks of %d", index, most, w.voters)
	}
}

// checkC2 checks that a request is applied once, and only after its predecessor in the stream.
func (w *world) checkC2(name string) {
	if _, ok := w.runs[name]; ok {
		w.t.Fatalf("C2: request %s is applied twice", name)
	}
	w.runs[name] = struct{}{}
	var server, incarnation, number int
	if _, err := fmt.Sscanf(name, "%d/%d/%d", &server, &incarnation, &number); err != nil {
		w.t.Fatal(err)
	}
	if _, ok := w.runs[fmt.Sprintf("%d/%d/%d", server, incarnation, number-1)]; number > 1 && !ok {
		w.t.Fatalf("C2: request %s is applied before its predecessor", name)
	}
	if _, ok := w.runs[fmt.Sprintf("%d/%d/1", server, incarnation+1)]; ok {
		w.t.Fatalf("C2: request %s is applied after a request of a later incarnation", name)
	}
}

// send puts a message on the network, through its encoding.
func (w *world) send(m Message) {
	frame, err := m.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if m, err = DecodeMessage(m.To, m.From, frame); err != nil {
		w.t.Fatal(err)
	}
	w.net = append(w.net, m)
}

// deliver takes message i off the network.
func (w *world) deliver(i int) {
	msg := w.net[i]
	w.net = slices.Delete(w.net, i, i+1)
	to, from := w.members[msg.To-1], w.members[msg.From-1]
	if to.cut || from.cut {
		return
	}
	if err := to.core.Step(&msg); err != nil {
		w.t.Fatal(err)
	}
	to.pump()
}

// chaos does one random thing.
func (w *world) chaos() {
	m := w.members[w.rng.IntN(len(w.members))]
	switch p := w.rng.IntN(1000); {
	case p < 350 && len(w.net) > 0:
		w.deliver(w.rng.IntN(min(len(w.net), 5)))
	case p < 360 && len(w.net) > 0:
		w.net = slices.Delete(w.net, 0, 1)
	case p < 375 && len(w.net) > 0:
		w.send(w.net[w.rng.IntN(len(w.net))])
	case p < 550:
		if len(m.queue) > 0 && !m.slow {
			m.write(1 + w.rng.IntN(len(m.queue)))
		}
	case p < 750:
		for range 1 + w.rng.IntN(4) {
			m.propose()
		}
	case p < 800:
		m.read()
	case p < 970:
		m.core.Tick()
	case p < 975:
		m.cut = !m.cut
	case p < 980:
		m.slow = !m.slow
	case p < 985:
		m.start()
	case p < 992:
		m.checkpoint = m.core.Meta()
		if m.checkpoint.Index != m.applied {
			w.t.Fatalf("C4: member %d: a checkpoint of index %d says %d", m.id, m.applied, m.checkpoint.Index)
		}
	default:
		w.nowMs += int64(w.rng.IntN(100_000)) - 50_000
	}
	m.pump()
}

// calm delivers and writes everything until nothing is under way, and lets time pass if that is not
// enough.
func (w *world) calm(done func() bool) {
	w.t.Helper()
	for range 2000 {
		for i := 0; i < 100_000 && w.busy(); i++ {
			if len(w.net) > 0 {
				w.deliver(0)
			}
			for _, m := range w.members {
				m.write(len(m.queue))
				m.pump()
			}
		}
		if done() {
			return
		}
		for _, m := range w.members {
			m.core.Tick()
			m.pump()
		}
	}
	w.t.Fatal("the members don't come to rest")
}

func (w *world) busy() bool {
	return len(w.net) > 0 || slices.ContainsFunc(w.members, func(m *member) bool { return len(m.queue) > 0 })
}

func (w *world) leader() *member {
	for _, m := range w.members {
		if m.core.role == raft.StateLeader && m.core.leader == m.id {
			return m
		}
	}
	return nil
}
