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

// number returns the number of a member, as people know it: package memberid has the reason.
func number(id uint64) uint64 { return id % MaxMemberID }

// nonsense returns why no member sends a message, or "". Raft trusts its messages: it panics if
// they contradict its log, and follows any term.
func (m *raftState) nonsense(r *raftpb.Message) string {
	// A member that was let in knows the term of its leader before it gets its first message.
	term := max(m.raftTerm, m.minTerm)
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
		if m.role == raft.StateLeader && r.GetTerm() == m.raftTerm && !r.GetReject() && r.GetIndex() > m.last {
			return fmt.Sprintf("it acknowledges entry %d, and the last entry is %d", r.GetIndex(), m.last)
		}
	case raftpb.MsgHeartbeatResp:
		if n := len(r.GetContext()); n != 0 && n != len(receiving) {
			return "its context is none of a heartbeat"
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
