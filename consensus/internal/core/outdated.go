package core

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// pastLife is what this member's data directory says about the member's earlier lives, and whether
// that is all. A directory that was restored from a copy lacks votes and acknowledgements on which
// the others may rely. Such a member is called outdated. An outdated member takes no part in raft,
// and asks to be let in as a member without state does, but keeps its state: only its promises are
// void. See docs/adr/0002-members-without-state.md.
//
// Two proofs show that a member is outdated:
//
//   - A leader's heartbeat names a commit index above the end of the member's log.
//   - A request of this server was applied under a later incarnation than the newest that the
//     directory knew at the start. The hello, the log and checkpoints show the incarnations of all
//     servers.
//
// Admission is safe as for a member without state (Admission), with two additions. The member has a
// term and must not answer in terms before its admission after another crash: the end of the mark
// is written together with the term of its admission and a vote for itself. And the member believes
// in an older membership; but any quorum of C that contains m contains another member with the
// removal on disk, which denies its vote to a candidate that lacks the removal.
//
// The member does not notice before it talks to a member that knows; if the copy is from its last
// life and the leader that it acknowledged entries to leads no longer; or if the copy is from a
// time when the server was alone (it stops with an error when it meets other members).
type pastLife struct {
	// incarnation is the newest one that the directory knew at the start. 0: there was no state, or
	// the member was let in during this life, so that its earlier lives do not count.
	incarnation uint64
	durable     bool            // the log says so too, and nothing is being written to it
	confirm     *raftpb.Message // comes back from the log when durable is true
	term        uint64          // of the hard state with which this member was let in; 0: it was not
}

// Mark is the part of the log's state that does not come from raft. A new mark must be durable
// before later appends are.
type Mark struct {
	Incarnation uint64
	Outdated    bool
	// Term and Vote are those with which this member was let in, and must replace those of an
	// earlier or the same term; 0: it was not let in.
	Term, Vote uint64
}

// mark returns the present mark of a member whose stream has the incarnation.
func (s *Admission) mark(incarnation uint64) Mark {
	m := Mark{Incarnation: incarnation, Outdated: s.proof != "", Term: s.past.term}
	if m.Term != 0 {
		m.Vote = s.id
	}
	return m
}

// MarkAppend returns the append that goes to the log together with a new mark.
func (s *Admission) MarkAppend() *raftpb.Message {
	to := raft.LocalAppendThread
	m := &raftpb.Message{To: &to}
	if s.proof != "" {
		s.past.confirm = &raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), To: &s.id}
		m.Responses = []*raftpb.Message{s.past.confirm}
	}
	return m
}

// persisted takes a response of the disk to this member, and reports whether the response says that
// a mark is durable.
func (s *Admission) persisted(m *raftpb.Message) bool {
	if m != s.past.confirm {
		return false
	}
	s.past.durable = true
	return true
}

// seeIncarnation compares an incarnation of this server, with an applied request, to what the
// directory knew. The directory knows each incarnation before its first request leaves. own is the
// present incarnation.
func (s *Admission) seeIncarnation(incarnation, own uint64) {
	if p := &s.past; incarnation > p.incarnation && incarnation != own {
		s.becomeOutdated(fmt.Sprintf(
			"the newest start that it knows is %x, but a request of the later start %x was applied", p.incarnation, incarnation))
	}
}

// checkCommit reports whether raft may see a heartbeat: its commit index must be in the log. The
// index is one that this member has acknowledged to the leader, so the log that held the entry is
// lost. If the member was let in since, the heartbeat is from before that.
func (s *Admission) checkCommit(r *raftpb.Message) (ok bool, err error) {
	last, err := s.storage.LastIndex()
	if err != nil || r.GetCommit() <= last || r.GetTerm() < s.raftTerm {
		return err == nil, err // raft knows what to do with an earlier term
	}
	s.becomeOutdated(fmt.Sprintf("its log ends at entry %d, but it has acknowledged entry %d", last, r.GetCommit()))
	return false, nil
}

// becomeOutdated ends this member's part in raft until a leader lets it in again.
func (s *Admission) becomeOutdated(proof string) {
	p := &s.past
	if s.proof != "" || p.incarnation == 0 {
		return
	}
	s.proof = proof
	s.standAside()
}

// stayOutdated makes this member outdated at its start, because the log says so. It returns false,
// and does nothing, if the member has no state.
func (s *Admission) stayOutdated() bool {
	s.becomeOutdated("an earlier start marked the log as outdated, and no leader has let this member in since")
	s.past.durable = s.proof != ""
	return s.past.durable
}

// errOutdatedAlone says that an outdated member can't be let in again with its state.
var errOutdatedAlone = errors.New("consensus: the data directory is older than what this member has acknowledged, and is from a time when it was the only member: " +
	"empty the directory, and the others will send the data")

// letIn makes an outdated member part of the ensemble again, with the state that it has. Its
// earlier votes are in terms up to the present one, in which it votes for no other member.
func (s *Admission) letIn(term uint64) error {
	p := &s.past
	if v := s.conf.GetVoters(); len(v) == 1 && v[0] == s.id {
		return errOutdatedAlone // what it applied may differ from what the others applied
	}
	p.term = max(s.raftTerm, term)
	if err := s.storage.SetHardState(&raftpb.HardState{Term: &p.term, Vote: &s.id, Commit: &s.applied}); err != nil {
		return err
	}
	s.proof, p.durable, p.confirm, p.incarnation = "", false, nil, 0
	s.minTerm = term
	return s.startRaft()
}
