package core

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// LogStall holds whether this member's log hangs, and what the member has done about that. LogStall
// decides to whom leadership goes, and which appends to members whose logs hang need not be sent.
//
// Heartbeats need no disk, so a leader whose log hangs would go on leading. The others would still
// commit what it sends, but the leader itself applies nothing, so it soon has maxInFlight entries
// under way and makes no more. All writes of the ensemble would wait for one disk.
type LogStall struct {
	*raftState
	stalled bool
	offers  map[uint64]int // by voter: how often leadership was offered to it since the log hangs
	probes  probes         // of the others, whose logs may hang too
}

// Set says whether the log hangs: for an election timeout some write or sync has been
// pending and none has ended. As long as the log hangs, a leader offers its leadership to one voter
// after the other until one takes over. Any other member
//
//   - does not campaign and does not accept leadership;
//   - drops entries and requests for its vote. It could answer neither before the log goes on, and
//     both would pile up. The leader sends the entries again.
//
// Call Set before each Tick.
func (s *LogStall) Set(stalled bool) {
	if s.stalled = stalled; !stalled {
		clear(s.offers)
	}
}

// Stalled reports whether the log hangs, as of the last call of Set.
func (s *LogStall) Stalled() bool { return s.stalled }

// tick counts a tick, and offers leadership to a voter, unless an offer is under way: raft
// withdraws an offer that was not taken after an election timeout.
func (s *LogStall) tick() {
	s.probes.ticks++
	if !s.stalled || s.role != raft.StateLeader || s.raft.BasicStatus().LeadTransferee != raft.None {
		return
	}
	if to := s.transferLeadership(s.conf.GetVoters()); to != 0 {
		s.offers[to]++
	}
}

// transferLeadership passes leadership to one of these members, and returns 0 if none can take
// over. Only a voter with everything that is applied here can: one that lacks entries for longer
// than a moment has a log that hangs, or is slow, and raft would accept no proposals while it waits
// for that voter. Of several, transferLeadership takes the most up-to-date one of those with the
// fewest offers.
func (s *LogStall) transferLeadership(among []uint64) uint64 {
	var best, match uint64
	s.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id == s.id || !slices.Contains(among, id) || !s.isVoter(id) || !pr.RecentActive || pr.Match < s.applied {
			return
		}
		if best == 0 || s.offers[id] < s.offers[best] || s.offers[id] == s.offers[best] && pr.Match >= match {
			best, match = id, pr.Match
		}
	})
	if best != 0 {
		s.raft.TransferLeader(best)
	}
	return best
}

func (s *LogStall) leadershipChanged() { clear(s.probes.last) }

// passive reports whether this member must neither campaign nor vote because its log hangs.
func (s *LogStall) passive() bool { return s.stalled && s.role != raft.StateLeader }

// needsLog reports whether a message is of no use to a member whose log hangs.
func needsLog(r *raftpb.Message) bool {
	t := r.GetType()
	return t == raftpb.MsgApp || t == raftpb.MsgVote || t == raftpb.MsgPreVote || t == raftpb.MsgTimeoutNow
}
