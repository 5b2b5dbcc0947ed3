package turn

import (
	"errors"
	"io"
	"log"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// testHost is member 1 of a new ensemble of 1 and 2, with a loop but no disk: appends are durable
// when the test calls settle. Of the calls of its methods it keeps what the tests look at.
type testHost struct {
	t        testing.TB
	core     *core.Core
	loop     *Loop
	storage  *raft.MemoryStorage
	queue    []LogWork
	messages []core.Message

	checkpoints []uint64 // begun, by index
	transfers   []uint64 // begun, by member
	cancelled   int
	discarded   int
	installed   []uint64
}

func newTestHost(t testing.TB) *testHost {
	h := &testHost{t: t, storage: raft.NewMemoryStorage()}
	c, err := core.New(core.Config{
		ID: 1, Incarnation: 1, Storage: h.storage, Meta: core.Meta{Member: 1, Streams: core.Streams{}},
		Voters: []uint64{1, 2}, Nonce: 1, GraceTicks: 1 << 30, Retention: core.DefaultRetention(), Random: func() uint64 { return 1 },
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.core = c
	h.loop = New(Config{Core: c, Host: h, Durable: true, HasPeers: true, CheckpointRequests: 10, CheckpointBytes: 1 << 30})
	if err := h.loop.Form(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testHost) Now() time.Time                      { return time.UnixMilli(1) }
func (h *testHost) Monotonic() time.Time                { return time.Time{} }
func (h *testHost) Send(m core.Message)                 { h.messages = append(h.messages, m) }
func (h *testHost) Flush()                              {}
func (h *testHost) Apply([]core.Batch)                  {}
func (h *testHost) Reconciled(core.Reconciled)          {}
func (h *testHost) FormLog(core.LogState) error         { return nil }
func (h *testHost) FormCheckpoint(core.Meta) error      { return nil }
func (h *testHost) StartTransfer(to []uint64, _ uint64) { h.transfers = append(h.transfers, to...) }
func (h *testHost) CancelTransfers()                    { h.cancelled++ }
func (h *testHost) Discard(*Received) error             { h.discarded++; return nil }
func (h *testHost) Installed(r *Received, _ []any)      { h.installed = append(h.installed, r.Meta.Index) }

func (h *testHost) WriteLog(work []LogWork, _ bool) error {
	h.queue = append(h.queue, work...)
	return nil
}

func (h *testHost) WriteCheckpoint(_ uint64, meta core.Meta) {
	h.checkpoints = append(h.checkpoints, meta.Index)
}

// settle takes turns, and makes appends durable, until nothing more happens.
func (h *testHost) settle() {
	h.t.Helper()
	for {
		if err := h.loop.Turn(); err != nil {
			h.t.Fatal(err)
		}
		if len(h.queue) == 0 {
			return
		}
		h.write()
	}
}

// write makes all appends durable.
func (h *testHost) write() {
	h.t.Helper()
	work := h.queue
	h.queue = nil
	for _, w := range work {
		if w.Append == nil {
			continue
		}
		if snap := w.Append.GetSnapshot(); snap != nil {
			if err := h.storage.ApplySnapshot(snap); err != nil {
				h.t.Fatal(err)
			}
		}
		err := errors.Join(h.storage.Append(w.Append.GetEntries()), h.loop.LogWritten(w.Append.GetResponses(), w.Install, h.Now()))
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// step delivers a message of another member.
func (h *testHost) step(from uint64, m *raftpb.Message) {
	h.t.Helper()
	to := uint64(1)
	m.From, m.To = &from, &to
	if err := h.core.Step(&core.Message{To: 1, From: from, Raft: m}); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
}

// lead lets the member win an election with the vote of member 2, and commits its first entry.
func (h *testHost) lead() {
	h.t.Helper()
	for range 10 * core.ElectionTicks {
		h.loop.Tick()
		h.settle()
		sent := h.messages
		h.messages = nil
		for _, m := range sent {
			answer := map[raftpb.MessageType]raftpb.MessageType{
				raftpb.MsgPreVote: raftpb.MsgPreVoteResp, raftpb.MsgVote: raftpb.MsgVoteResp,
			}
			if typ, ok := answer[m.Raft.GetType()]; ok && m.To == 2 {
				term := m.Raft.GetTerm()
				h.step(2, &raftpb.Message{Type: typ.Enum(), Term: &term})
			}
		}
		if h.core.Leads() {
			h.acknowledge()
			return
		}
	}
	h.t.Fatal("no election was won")
}

// acknowledge lets member 2 say that it has the whole log.
func (h *testHost) acknowledge() {
	h.t.Helper()
	last, err := h.storage.LastIndex()
	if err != nil {
		h.t.Fatal(err)
	}
	term := h.core.RaftTerm()
	h.step(2, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), Term: &term, Index: &last})
}

// followAnother ends the member's leadership by a message of a leader of a later term.
func (h *testHost) followAnother() {
	h.t.Helper()
	term := h.core.RaftTerm() + 1
	h.step(2, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: &term})
}
