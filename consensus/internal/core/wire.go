package core

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	// maxTermJump is how far the term of a message may be ahead of this member's. Terms grow by one
	// with each election that a quorum agreed to begin, so a member that was away lags by the
	// elections since. 2^32 elections take 27 years if one follows another at the shortest election
	// timeout, 200 ms. Beyond that, a single message could use up the terms: they do not fall
	// again.
	maxTermJump = 1 << 32
	// maxIndex is above every index that a log reaches.
	maxIndex = 1 << 62
	// MaxMemberID bounds the ids of members.
	MaxMemberID = 255
	// readContextBytes is the size of the context of a read round.
	readContextBytes = 24
)

// wire holds what this member exchanges with the others.
type wire struct {
	outbox  []Message // made outside of Ready, sent by the next Ready
	last    uint64    // the newest entry that was handed to the log: no member can have acknowledged a later one
	refused uint64    // messages that no member sends
	relays  relays
}

// noteAppend notes what is handed to the log, before it is sent to other members.
func (w *wire) noteAppend(m *raftpb.Message) {
	if n := len(m.GetEntries()); n > 0 {
		w.last = m.GetEntries()[n-1].GetIndex()
	} else if s := m.GetSnapshot(); s != nil {
		w.last = s.GetMetadata().GetIndex()
	}
}

// refuse counts and logs a message that makes no sense.
func (c *Core) refuse(r *raftpb.Message, reason string) {
	if c.wire.refused++; c.wire.refused&(c.wire.refused-1) == 0 { // a broken member must not fill the disk with log lines
		c.logger.Errorf("%v of member %d refused (refused so far: %d): %s",
			r.GetType(), number(r.GetFrom()), c.wire.refused, reason)
	}
}

// Refused counts the messages of other members that make no sense.
func (c *Core) Refused() uint64 { return c.wire.refused }

// number returns the number of a member, as people know it: package memberid has the reason.
func number(id uint64) uint64 { return id % MaxMemberID }

// nonsense returns why no member sends a message, or "". Raft trusts its messages: it panics if
// they contradict its log, and follows any term.
func (c *Core) nonsense(r *raftpb.Message) string {
	// A member that was let in knows the term of its leader before it gets its first message.
	term := max(c.raftTerm, c.start.minTerm)
	switch {
	case r.GetTerm() > term && r.GetTerm()-term > maxTermJump:
		return fmt.Sprintf("its term is %d and this member's is %d: no ensemble holds so many elections", r.GetTerm(), term)
	case r.GetTerm() == 0 && r.GetType() != raftpb.MsgReadIndex:
		return "it has no term"
	case r.GetIndex() >= maxIndex || r.GetCommit() >= maxIndex || r.GetRejectHint() >= maxIndex:
		return "no log has so many entries"
	}
	switch r.GetType() {
	case raftpb.MsgReadIndex:
		if len(r.GetEntries()) != 1 || len(r.GetEntries()[0].GetData()) != readContextBytes {
			return "it is no read round"
		}
	case raftpb.MsgAppResp:
		if c.role == raft.StateLeader && r.GetTerm() == c.raftTerm && !r.GetReject() && r.GetIndex() > c.wire.last {
			return fmt.Sprintf("it acknowledges entry %d, and the last entry is %d", r.GetIndex(), c.wire.last)
		}
	case raftpb.MsgApp:
		return nonsenseEntries(r)
	}
	return ""
}

// nonsenseEntries returns why no leader sends these entries, or "". Entries of a kind that this
// version does not know are left to apply, which stops with an error that says so.
func nonsenseEntries(r *raftpb.Message) string {
	term := r.GetLogTerm()
	for i, e := range r.GetEntries() {
		if e.GetIndex() != r.GetIndex()+1+uint64(i) || e.GetTerm() < term || e.GetTerm() > r.GetTerm() {
			return fmt.Sprintf("entry %d of term %d does not follow on entry %d of term %d", e.GetIndex(), e.GetTerm(), r.GetIndex()+uint64(i), term)
		}
		term = e.GetTerm()
		var err error
		switch data := e.GetData(); {
		case e.GetType() == raftpb.EntryConfChangeV2:
			err = checkConfChange(data)
		case e.GetType() == raftpb.EntryNormal && len(data) > 0 && data[0] == batchVersion:
			_, err = ReadBatch(data, func(uint64, uint64, uint64, []byte) {})
		}
		if err != nil {
			return fmt.Sprintf("entry %d: %v", e.GetIndex(), err)
		}
	}
	return ""
}

func checkConfChange(data []byte) error {
	var cc raftpb.ConfChangeV2
	if err := proto.Unmarshal(data, &cc); err != nil {
		return err
	}
	for _, change := range cc.GetChanges() {
		if id := change.GetNodeId(); id == 0 || id > MaxMemberID {
			return fmt.Errorf("a change of the membership names member %d", number(id))
		}
	}
	return nil
}
