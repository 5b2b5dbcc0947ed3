package turn

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// turn takes a turn; appends stay in the queue.
func (h *testHost) turn() {
	h.t.Helper()
	if err := h.loop.Turn(); err != nil {
		h.t.Fatal(err)
	}
}

// deliver is step without writing appends.
func (h *testHost) deliver(m *raftpb.Message) {
	h.t.Helper()
	from, to := uint64(2), uint64(1)
	m.From, m.To = &from, &to
	if err := h.core.Step(&core.Message{To: 1, From: from, Raft: m}); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
}

// ticks lets time pass. Member 2 answers heartbeats. ticks returns the types of the other messages.
func (h *testHost) ticks(n int) (sent []raftpb.MessageType) {
	h.t.Helper()
	for range n {
		h.messages = nil
		h.loop.Tick()
		h.turn()
		for i := 0; i < len(h.messages); i++ { // answers to the answers too
			m := h.messages[i]
			if m.Raft.GetType() != raftpb.MsgHeartbeat {
				sent = append(sent, m.Raft.GetType())
				continue
			}
			term := m.Raft.GetTerm()
			h.deliver(&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), Term: &term})
		}
	}
	return sent
}

// propose makes an entry that waits for the log, and lets member 2 acknowledge it.
func (h *testHost) propose() {
	h.t.Helper()
	h.core.Propose([]byte("request"), nil)
	h.turn()
	term, index := h.core.RaftTerm(), h.core.Applied()+1
	h.deliver(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), Term: &term, Index: &index})
}

// A leader offers its leadership when a write has been pending for an election timeout, and again
// when the offer was not taken.
func TestLog_HangingLeader(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	h.propose()
	if sent := h.ticks(core.ElectionTicks); slices.Contains(sent, raftpb.MsgTimeoutNow) {
		t.Fatalf("too early: %v", sent)
	}
	if sent := h.ticks(1); !slices.Contains(sent, raftpb.MsgTimeoutNow) {
		t.Fatalf("no offer: %v", sent)
	}
	if sent := h.ticks(core.ElectionTicks + 2); !slices.Contains(sent, raftpb.MsgTimeoutNow) {
		t.Fatalf("no second offer: %v", sent)
	}
	h.settle()
	if sent := h.ticks(4 * core.ElectionTicks); slices.Contains(sent, raftpb.MsgTimeoutNow) || h.loop.LogStalled() {
		t.Errorf("the log works again, and leadership is offered: %v", sent)
	}
}

// A slow log is not a hanging one.
func TestLog_Slow(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	for range 5 {
		h.propose()
		if sent := h.ticks(core.ElectionTicks - 1); slices.Contains(sent, raftpb.MsgTimeoutNow) {
			t.Fatalf("%v", sent)
		}
		h.settle()
	}
}

// A disk on which each write takes longer than an election timeout is slow. Once that is known,
// leadership is not passed around for it; but a disk that hangs is still found.
func TestLog_RegularlySlow(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	offers := 0
	for range 10 {
		h.propose()
		if slices.Contains(h.ticks(core.ElectionTicks*3/2), raftpb.MsgTimeoutNow) {
			offers++
		}
		h.settle()
		h.ticks(core.ElectionTicks) // an offer ends
	}
	if offers != 1 {
		t.Errorf("leadership was offered %d times", offers)
	}
	h.propose()
	if !slices.Contains(h.ticks(maxLimit+1), raftpb.MsgTimeoutNow) {
		t.Error("no offer when the disk hung")
	}
	h.settle()
	h.ticks(core.ElectionTicks + 1) // the offer ends
	for range 20 {
		h.propose()
		h.settle()
	}
	h.propose()
	if !slices.Contains(h.ticks(core.ElectionTicks+1), raftpb.MsgTimeoutNow) {
		t.Error("no offer after an election timeout, although the disk is fast again")
	}
}

// A follower whose log hangs does not campaign when the leader is gone, takes no leadership, and
// gives its log nothing more to do.
func TestLog_HangingFollower(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	h.followAnother()
	term, index := h.core.RaftTerm(), h.core.Applied()
	last := h.core.AppliedTerm()
	app := func() *raftpb.Message {
		next := index + 1
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: &term, Index: &index, LogTerm: &last, Entries: []*raftpb.Entry{{Index: &next, Term: &term}}}
	}
	h.deliver(app())
	h.ticks(core.ElectionTicks - 1) // so that there is no campaign yet
	beat := func() { h.deliver(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: &term}) }
	beat()
	h.ticks(2)
	if !h.loop.LogStalled() {
		t.Fatal("the log hangs, and that goes unnoticed")
	}
	waiting := len(h.queue)
	if waiting == 0 {
		t.Fatal("no append waits")
	}
	h.deliver(app())
	h.deliver(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), Term: &term})
	vote := term + 1
	h.deliver(&raftpb.Message{Type: raftpb.MsgPreVote.Enum(), Term: &vote, Index: &index, LogTerm: &last})
	if sent := h.ticks(10 * core.ElectionTicks); len(sent) > 0 || len(h.queue) != waiting {
		t.Errorf("sent %v; %d appends wait, there were %d", sent, len(h.queue), waiting)
	}
	if h.core.Leader() != 0 {
		t.Errorf("follows the silent leader %d", h.core.Leader())
	}
	h.settle()
	if sent := h.ticks(3 * core.ElectionTicks); !slices.Contains(sent, raftpb.MsgPreVote) && len(h.queue) == 0 {
		t.Errorf("the log works again, and there is no campaign: %v", sent)
	}
}

// When the log of a follower goes on, the time for which it hung counts for the leader's silence: a
// voter that believes in a leader refuses its vote to others.
func TestLog_DoubtsTheLeaderAfterAHang(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	h.followAnother()
	term, index, last := h.core.RaftTerm(), h.core.Applied(), h.core.AppliedTerm()
	next := index + 1
	h.deliver(&raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: &term, Index: &index, LogTerm: &last, Entries: []*raftpb.Entry{{Index: &next, Term: &term}}})
	h.ticks(core.ElectionTicks - 1)
	h.deliver(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: &term})
	h.ticks(core.ElectionTicks / 2)
	if !h.loop.LogStalled() || h.core.Leader() == 0 {
		t.Fatal("the log does not hang, or there is no leader")
	}
	h.settle()
	h.ticks(core.ElectionTicks/2 + 1)
	if leader := h.core.Leader(); leader != 0 {
		t.Errorf("follows member %d, which was silent for more than an election timeout", leader)
	}
}

// A member that answers heartbeats and acknowledges no entries, because its log hangs, does not get
// the same entries with each heartbeat.
func TestLog_ProbesAreNotRepeated(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	h.core.Unreachable(2, false) // raft no longer knows how far the log of member 2 goes
	h.core.Propose([]byte("request"), nil)
	h.settle()
	const n = 5 * core.ElectionTicks
	appends := 0
	for _, typ := range h.ticks(n) {
		if typ == raftpb.MsgApp {
			appends++
		}
	}
	if appends == 0 || appends > n/4 {
		t.Errorf("%d appends in %d ticks", appends, n)
	}
}
