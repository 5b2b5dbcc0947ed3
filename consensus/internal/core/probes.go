package core

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// repeatTicks is the least time between two equal probes.
const repeatTicks = ElectionTicks / 2

// probes keeps a leader from flooding a member whose log hangs. While raft does not know how far a
// member's log goes, it sends the member up to maxBatchBytes of entries with each heartbeat that
// the member answers, until the member acknowledges some. A member whose log hangs answers
// heartbeats and acknowledges nothing.
type probes struct {
	ticks int
	last  map[uint64]probe // by member
}

// probe is an append with entries after index, sent at a tick.
type probe struct {
	index uint64
	tick  int
}

// repeats reports whether a message repeats the last append to its member too early: then it need
// not be sent. Only probes are left out. Raft relies on the arrival of other appends.
func (s *LogStall) repeats(m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgApp || len(m.GetEntries()) == 0 {
		return false
	}
	p, to := &s.probes, m.GetTo()
	if last, ok := p.last[to]; ok && last.index == m.GetIndex() && p.ticks-last.tick < repeatTicks && s.probing(to) {
		return true
	}
	p.last[to] = probe{m.GetIndex(), p.ticks}
	return false
}

// receiving is the context with which a member answers the leader while a message of the leader
// arrives. To raft it is the answer to a read round: number 0, which no round has.
var receiving [8]byte

// noteReceiving lets the last probe of a member count as sent now, because it may be arriving.
func (s *LogStall) noteReceiving(member uint64) {
	if last, ok := s.probes.last[member]; ok {
		s.probes.last[member] = probe{last.index, s.probes.ticks}
	}
}

// forget lets the next probe of a member leave at once: the last may be lost.
func (s *LogStall) forget(member uint64) { delete(s.probes.last, member) }

// probing reports whether raft does not know how far the member's log goes.
func (s *LogStall) probing(member uint64) (probing bool) {
	s.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		probing = probing || id == member && pr.State == tracker.StateProbe
	})
	return probing
}
