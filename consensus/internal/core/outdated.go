package core

import (
	"encoding/binary"
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
// Admission is safe as for a member without state (startup), with two additions. The member has a
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
	proof       string          // why this member is outdated; "": it is not, as far as it knows
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

// Mark returns the present mark.
func (c *Core) Mark() Mark {
	p := &c.start.past
	m := Mark{Incarnation: c.own.incarnation, Outdated: p.proof != "", Term: p.term}
	if p.term != 0 {
		m.Vote = c.id
	}
	return m
}

// MarkAppend returns the append that goes to the log together with a new mark.
func (c *Core) MarkAppend() *raftpb.Message {
	to := raft.LocalAppendThread
	m := &raftpb.Message{To: &to}
	if p := &c.start.past; p.proof != "" {
		p.confirm = &raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), To: &c.id}
		m.Responses = []*raftpb.Message{p.confirm}
	}
	return m
}

// Outdated returns the proof that this member's directory is older than what the member has
// acknowledged, or "".
func (c *Core) Outdated() string { return c.start.past.proof }

// AppendIncarnations appends, for each server, the newest incarnation with an applied request. A
// member shows them to each other member before it exchanges messages.
func (c *Core) AppendIncarnations(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(c.streams)))
	for _, id := range c.streams.servers() {
		b = binary.AppendUvarint(binary.AppendUvarint(b, id), c.streams[id].Incarnation)
	}
	return b
}

// Incarnations counts the changes of what AppendIncarnations appends.
func (c *Core) Incarnations() uint64 { return c.start.incarnations }

// ReadIncarnation reads the output of AppendIncarnations, and returns the incarnation of a server;
// 0 if it is not known. Earlier versions of gozkd append nothing.
func ReadIncarnation(r *Uvarints, server uint64) (incarnation uint64) {
	if len(r.Rest) == 0 {
		return 0
	}
	for n := r.Next(); n > 0 && !r.Bad; n-- {
		if id, i := r.Next(), r.Next(); id == server {
			incarnation = i
		}
	}
	return incarnation
}

// KnownIncarnation returns the newest incarnation of a server with a request that is applied here.
func (c *Core) KnownIncarnation(server uint64) uint64 { return c.streams[server].Incarnation }

// SeeOwnIncarnation compares an incarnation of this server, with an applied request, to what the
// directory knew. The directory knows each incarnation before its first request leaves.
func (c *Core) SeeOwnIncarnation(incarnation uint64) {
	p := &c.start.past
	if p.incarnation != 0 && incarnation > p.incarnation && incarnation != c.own.incarnation {
		c.becomeOutdated(fmt.Sprintf("the newest start that it knows is %x, but a request of the later start %x was applied", p.incarnation, incarnation))
	}
}

// checkCommit reports whether raft may see a heartbeat: its commit index must be in the log. The
// index is one that this member has acknowledged to the leader, so the log in which it did is lost.
// If the member was let in since, the heartbeat is a late one, from before.
func (c *Core) checkCommit(r *raftpb.Message) (ok bool, err error) {
	last, err := c.storage.LastIndex()
	if err != nil || r.GetCommit() <= last || r.GetTerm() < c.raftTerm {
		return err == nil, err // raft knows what to do with an earlier term
	}
	c.becomeOutdated(fmt.Sprintf("its log ends at entry %d, but it has acknowledged entry %d", last, r.GetCommit()))
	return false, nil
}

// becomeOutdated ends this member's part in raft until a leader lets it in again.
func (c *Core) becomeOutdated(proof string) {
	p := &c.start.past
	if p.proof != "" || p.incarnation == 0 {
		return
	}
	p.proof = proof
	c.leader, c.role = raft.None, raft.StateFollower
	c.start.campaignIn = 0
	c.leadershipChanged()
}

// errOutdatedAlone says that an outdated member can't be let in again with its state.
var errOutdatedAlone = errors.New("consensus: the data directory is older than what this member has acknowledged, and is from a time when it was the only member: " +
	"empty the directory, and the others will send the data")

// letIn makes an outdated member part of the ensemble again, with the state that it has. Its
// earlier votes are in terms up to the present one, in which it votes for no other member.
func (c *Core) letIn(term uint64) error {
	p := &c.start.past
	if v := c.conf.GetVoters(); len(v) == 1 && v[0] == c.id {
		return errOutdatedAlone // what it applied may differ from what the others applied
	}
	p.term = max(c.raftTerm, term)
	if err := c.storage.SetHardState(&raftpb.HardState{Term: &p.term, Vote: &c.id, Commit: &c.applied}); err != nil {
		return err
	}
	p.proof, p.durable, p.confirm, p.incarnation = "", false, nil, 0
	c.start.minTerm = term
	return c.newRaft()
}
