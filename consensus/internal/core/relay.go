package core

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A relay is a voter that sends the entries that it has applied to learners, so that the leader
// need not. Entries that are applied are committed: every leader of this term or a later one has
// them, so raft at the learner may take them as appends of the leader, whoever sends them.
//
//   - The learner chooses a relay, and asks it for the entries after those that it has applied. The
//     request is a MsgAppResp to a member that does not lead, which members of earlier versions
//     ignore.
//   - The relay answers with MsgApps that have the context relayed, and sends further entries as it
//     applies them, while the requests come.
//   - The learner tells the leader in each report what it has applied, by a MsgAppResp with the
//     context relayed. The leader withholds appends from the learner for leaseTicks. A learner that
//     has lost its relay sends the context unrelayed.
//
// Elections, heartbeats, reads and requests do not involve the relay.
const (
	// relayed and unrelayed are the contexts of the messages.
	relayed   = 1
	unrelayed = 0
	// arriving follows relayed while a message of the relay takes long to arrive.
	arriving = 1
	// relayPatience is how many ticks a relay may be silent.
	relayPatience = ElectionTicks / 2
	// leaseTicks is how long the leader withholds appends after a report.
	leaseTicks = ElectionTicks
	// reportTicks is the most ticks between two reports.
	reportTicks = 3
	// relayWindow is how many bytes of entries a relay sends without a report that makes progress;
	// twice that may be under way.
	relayWindow = 8 << 20
)

// Relays is this member's part in relaying, as a learner, as a relay and as the leader. Whatever
// Relays holds may be lost at any time: then the leader sends the entries.
type Relays struct {
	*raftState
	stall  *LogStall
	wanted bool                   // see Config.Relayed
	source relaySource            // of this learner
	feeds  []*relayFeed           // the learners that this member sends entries to
	leases map[uint64]*relayLease // by learner that does not need the leader's appends
}

type relaySource struct {
	id       uint64 // the relay, or the voter that was asked to be; 0: none
	active   bool   // the relay sends entries
	silence  int    // ticks since the relay was heard from, or chosen
	since    int    // ticks for which it has been active
	last     uint64 // the newest entry that came from the relay
	skipped  uint64 // voters that were of no use
	due      bool   // a tick has passed since the last report
	arriving bool   // parts of a message of the relay have come since the last report
	reported uint64 // in the last report
	age      int    // ticks since the last report
	lost     bool   // the leader is to be told that the relay is lost
}

// relayFeed is what this member knows about a learner that it sends entries to.
type relayFeed struct {
	learner  uint64
	have     uint64 // the learner has applied this entry
	next     uint64 // entry to send next
	mark     uint64 // when the learner has this entry, the window opens again
	window   int    // bytes that may be sent
	silence  int    // ticks since the last request
	waiting  int    // ticks in which the learner lacked entries that were sent, and reported no progress
	answered bool   // since the last request
}

// relayLease is a learner that has said that it has a relay.
type relayLease struct {
	ticks   int    // for which the leader withholds appends
	match   uint64 // raft's Match of the learner, when it last made progress
	goal    uint64 // what was applied here then
	idle    int    // ticks since, if the learner has not reached the goal
	refused int    // ticks for which the learner's relay does not count
}

// leadershipChanged forgets all agreements: they are for a term. The learner keeps its choice.
func (rel *Relays) leadershipChanged() {
	rel.source = relaySource{id: rel.source.id, skipped: rel.source.skipped}
	rel.feeds = nil
	clear(rel.leases)
}

// idle reports whether this member has no part in relaying.
func (rel *Relays) idle() bool { return rel.source.id == 0 && len(rel.feeds)+len(rel.leases) == 0 }

// Source returns the voter that sends entries to this learner; 0: the leader does.
func (rel *Relays) Source() uint64 {
	if !rel.source.active {
		return 0
	}
	return rel.source.id
}

// Learners returns the learners that this member sends entries to in place of the leader, sorted.
func (rel *Relays) Learners() (learners []uint64) {
	for _, f := range rel.feeds {
		learners = append(learners, f.learner)
	}
	slices.Sort(learners)
	return learners
}

// unreachable ends the relaying with a member whose connection is lost.
func (rel *Relays) unreachable(peer uint64) {
	rel.feeds = slices.DeleteFunc(rel.feeds, func(f *relayFeed) bool { return f.learner == peer })
	if rel.source.id == peer {
		rel.source.giveUp()
	}
}

func (rel *Relays) tick() {
	rel.tickSource()
	rel.feeds = slices.DeleteFunc(rel.feeds, func(f *relayFeed) bool {
		f.silence++
		f.waiting++
		return f.silence > relayPatience || !rel.isLearner(f.learner)
	})
	rel.tickLeases()
}

// tickSource chooses a relay for this learner, and gives up one that is silent. Learners with
// consecutive ids choose different relays.
func (rel *Relays) tickSource() {
	s := &rel.source
	s.due, s.age, s.silence, s.since = true, s.age+1, s.silence+1, s.since+1
	if s.id != 0 && (s.silence > relayPatience || !rel.mayRelay(s.id)) {
		s.giveUp()
	}
	if s.id != 0 || !rel.wanted || !rel.Current() || !rel.takesPart() {
		return
	}
	candidates := slices.Sorted(slices.Values(rel.conf.GetVoters()))
	candidates = slices.DeleteFunc(candidates, func(id uint64) bool { return !rel.mayRelay(id) })
	if n := uint64(len(candidates)); n > 0 {
		s.id, s.silence = candidates[(rel.id+s.skipped)%n], 0
	}
}

// mayRelay reports whether a member can be the relay of this learner.
func (rel *Relays) mayRelay(id uint64) bool {
	return rel.isLearner(rel.id) && rel.isVoter(id) && id != rel.leader && rel.connected[id] != 0
}

// giveUp makes the learner choose another relay at the next tick.
func (s *relaySource) giveUp() {
	*s = relaySource{skipped: s.skipped + 1, due: s.due, lost: s.active || s.lost}
}

// report tells the relay and the leader what this learner has applied. It leaves together with the
// answer to a heartbeat. What is applied is on this member's disk, and so is the term, because an
// entry of this term is applied.
func (rel *Relays) report(out *Output) {
	s := &rel.source
	if s.id == 0 && !s.lost || !s.due || !rel.Current() || s.reported == rel.applied && s.age < reportTicks && !s.lost {
		return
	}
	context := []byte{relayed}
	if s.arriving {
		context = append(context, arriving)
	}
	s.due, s.arriving, s.age, s.reported = false, false, 0, rel.applied
	send := func(to uint64, context []byte) {
		out.Messages = append(out.Messages, Message{To: to, From: rel.id, Raft: &raftpb.Message{
			Type: raftpb.MsgAppResp.Enum(), To: &to, From: &rel.id, Term: new(rel.raftTerm), Index: new(rel.applied),
			Context: context,
		}})
	}
	if s.id != 0 {
		send(s.id, context)
	}
	switch {
	case s.active:
		send(rel.leader, context)
	case s.lost:
		s.lost = false
		send(rel.leader, []byte{unrelayed})
	}
}

// Withheld reports whether an answer to the leader need not be sent, because a report takes its
// place: the answer to an append of the relay.
func (rel *Relays) Withheld(m *raftpb.Message) bool {
	s := &rel.source
	return s.active && m.GetType() == raftpb.MsgAppResp && m.GetTerm() == rel.raftTerm && m.GetIndex() <= s.last
}

// step takes the messages that only relaying needs, and returns the message that raft is to
// see instead; nil: none.
func (rel *Relays) step(r *raftpb.Message) *raftpb.Message {
	from := r.GetFrom()
	switch r.GetType() {
	case raftpb.MsgApp:
		if len(r.GetContext()) > 0 {
			return rel.fromRelay(r)
		}
		// The leader still sends entries after it was told of the relay: that is not good enough.
		if s := &rel.source; s.active && s.since > 2*ElectionTicks && len(r.GetEntries()) > 0 {
			s.giveUp()
		}
	case raftpb.MsgAppResp:
		switch {
		case r.GetTerm() != rel.raftTerm || !rel.isLearner(from) || len(r.GetContext()) == 0:
		case rel.role == raft.StateLeader:
			rel.noteLease(from, r.GetContext())
		default:
			rel.feedRequested(from, r.GetIndex(), r.GetContext())
		}
	}
	return r
}

// arriving notes that a part of a message of another member has come, which may be the relay: its
// other messages wait behind that one.
func (rel *Relays) arriving(from uint64) {
	if s := &rel.source; s.id == from {
		s.silence, s.arriving = 0, true
	}
}

// fromRelay returns an append of the relay as one of the leader.
func (rel *Relays) fromRelay(r *raftpb.Message) *raftpb.Message {
	s := &rel.source
	if s.id == 0 || r.GetFrom() != s.id || r.GetTerm() != rel.raftTerm ||
		rel.leader == raft.None || rel.role == raft.StateLeader {
		return nil
	}
	s.silence = 0
	if !s.active {
		s.active, s.since = true, 0
	}
	s.last = max(s.last, r.GetIndex()+uint64(len(r.GetEntries())))
	return &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: r.To, From: new(rel.leader), Term: r.Term, Index: r.Index, LogTerm: r.LogTerm,
		Entries: r.GetEntries(), Commit: r.Commit,
	}
}

// feedRequested notes that a learner asks this member for the entries after the entry have. A
// member that cannot relay is silent: the learner then asks another voter.
func (rel *Relays) feedRequested(learner, have uint64, context []byte) {
	if !rel.Voter() || !rel.Current() || rel.stall.passive() || have == 0 {
		return
	}
	i := slices.IndexFunc(rel.feeds, func(f *relayFeed) bool { return f.learner == learner })
	if i < 0 {
		i = len(rel.feeds)
		rel.feeds = append(rel.feeds, &relayFeed{learner: learner, next: have + 1, window: relayWindow, mark: have})
	}
	f := rel.feeds[i]
	if have > f.have || have+1 >= f.next || len(context) > 1 {
		f.waiting = 0
	}
	f.have, f.next, f.silence, f.answered = have, max(f.next, have+1), 0, false
	switch {
	case f.waiting > relayPatience: // what was sent may be lost; or the learner's log hangs: send little
		f.next, f.waiting, f.mark, f.window = have+1, 0, have+1, maxBatchBytes
	case have >= f.mark:
		f.mark, f.window = f.next-1, relayWindow
	}
}

// feedLearners sends the entries that are applied here to the learners that ask for them.
func (rel *Relays) feedLearners(out *Output) {
	rel.feeds = slices.DeleteFunc(rel.feeds, func(f *relayFeed) bool {
		for !f.answered || f.next <= rel.applied && f.window > 0 {
			m := rel.nextFeed(f)
			if m == nil {
				return true
			}
			f.answered = true
			out.Messages = append(out.Messages, Message{To: f.learner, From: rel.id, Raft: m})
		}
		return false
	})
}

// nextFeed returns the next entries for a learner, or nil if they are not in memory any longer.
func (rel *Relays) nextFeed(f *relayFeed) *raftpb.Message {
	before := min(f.next-1, rel.applied) // the learner may be ahead, if it has just left another source
	term, err := rel.storage.Term(before)
	if err != nil {
		return nil
	}
	var entries []*raftpb.Entry
	if f.next <= rel.applied && f.window > 0 {
		if entries, err = rel.storage.Entries(f.next, rel.applied+1, maxBatchBytes); err != nil {
			return nil
		}
	}
	m := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: &f.learner, From: &rel.id, Term: new(rel.raftTerm),
		Index: &before, LogTerm: &term, Entries: entries, Commit: new(rel.applied), Context: []byte{relayed},
	}
	for _, e := range entries {
		f.window -= len(e.GetData()) + entryBytes
	}
	f.next += uint64(len(entries))
	return m
}

// noteLease notes whether a learner needs no appends of this leader.
func (rel *Relays) noteLease(learner uint64, context []byte) {
	l, has := rel.leases[learner], context[0] == relayed
	if l != nil && len(context) > 1 {
		l.idle = 0
	}
	switch {
	case l == nil && !has:
	case l == nil:
		rel.leases[learner] = &relayLease{ticks: leaseTicks}
	case !has:
		l.ticks = 0
	case l.refused == 0:
		l.ticks = leaseTicks
	}
}

// Leased reports whether this leader withholds appends from a learner, because it has a relay.
func (rel *Relays) Leased(learner uint64) bool {
	l := rel.leases[learner]
	return l != nil && l.ticks > 0 && rel.isLearner(learner)
}

// tickLeases ends the leases of learners that are silent, and refuses those of learners whose relay
// leaves them behind: they lack what was applied here an election timeout ago, with nothing since.
func (rel *Relays) tickLeases() {
	if len(rel.leases) == 0 {
		return
	}
	rel.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		l := rel.leases[id]
		if l == nil {
			return
		}
		l.ticks, l.refused = max(l.ticks-1, 0), max(l.refused-1, 0)
		if l.idle++; pr.Match > l.match || pr.Match >= l.goal {
			l.match, l.goal, l.idle = pr.Match, rel.applied, 0
		}
		if l.ticks > 0 && l.idle > ElectionTicks {
			l.ticks, l.refused = 0, patienceTicks
		}
	})
	maps.DeleteFunc(rel.leases, func(id uint64, l *relayLease) bool {
		return l.ticks == 0 && l.refused == 0 || !rel.isLearner(id) // one that comes back may lack its log
	})
}
