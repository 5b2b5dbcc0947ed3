package turn

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// fakeHost notes what a loop asks for. A method whose name is in fails returns errFake.
type fakeHost struct {
	now, mono   time.Time
	sent        []core.Message
	flushed     int
	log         []LogWork
	idle        []bool // of each write
	batches     []core.Batch
	checkpoints []string
	transfers   []string
	discarded   int
	lost        []any
	fails       string
	storage     *raft.MemoryStorage
}

var errFake = errors.New("fake")

func (h *fakeHost) failure(method string) error {
	if h.fails == method {
		return errFake
	}
	return nil
}

func (h *fakeHost) Now() time.Time       { return h.now }
func (h *fakeHost) Monotonic() time.Time { return h.mono }
func (h *fakeHost) Send(m core.Message)  { h.sent = append(h.sent, m) }
func (h *fakeHost) Flush()               { h.flushed = len(h.sent) }
func (h *fakeHost) Apply(b []core.Batch) {
	if len(b) == 0 {
		panic("nothing to apply")
	}
	h.batches = append(h.batches, b...)
}
func (h *fakeHost) Reconciled(core.Reconciled)     {}
func (h *fakeHost) FormLog(core.LogState) error    { return h.failure("FormLog") }
func (h *fakeHost) FormCheckpoint(core.Meta) error { return h.failure("FormCheckpoint") }
func (h *fakeHost) CancelTransfers()               { h.transfers = append(h.transfers, "cancel") }

func (h *fakeHost) WriteLog(work []LogWork, idle bool) error {
	h.log = append(h.log, work...)
	h.idle = append(h.idle, idle)
	return h.failure("WriteLog")
}

func (h *fakeHost) WriteCheckpoint(base uint64, meta core.Meta) {
	h.checkpoints = append(h.checkpoints, fmt.Sprintf("%d since %d", meta.Index, base))
}

func (h *fakeHost) StartTransfer(to []uint64, index uint64) {
	h.transfers = append(h.transfers, fmt.Sprintf("%d to %v", index, to))
}

func (h *fakeHost) Discard(*Received) error {
	h.discarded++
	return h.failure("Discard")
}

func (h *fakeHost) Installed(_ *Received, lost []any) { h.lost = lost }

// newLoop returns the loop of member 1 of these voters, or of a member without state.
func newLoop(t *testing.T, cfg Config, voters ...uint64) (*Loop, *fakeHost) {
	t.Helper()
	return newLoopWith(t, cfg, core.DefaultRetention(1<<40), voters...)
}

func newLoopWith(t *testing.T, cfg Config, retention core.RetentionLimits, voters ...uint64) (*Loop, *fakeHost) {
	t.Helper()
	return newLoopOf(t, cfg, core.Config{Retention: retention}, &raftpb.ConfState{Voters: voters})
}

// newLoopOf returns the loop of member 1 in that configuration. If the configuration is empty, the
// member has no state.
func newLoopOf(t *testing.T, cfg Config, c core.Config, conf *raftpb.ConfState) (*Loop, *fakeHost) {
	t.Helper()
	c.ID, c.Incarnation, c.Past, c.Nonce, c.Logger = 1, 9, 4, 1, discarded
	c.Storage, c.Random = raft.NewMemoryStorage(), func() uint64 { return 1 }
	if len(conf.GetVoters()) > 0 {
		c.Meta = core.Meta{Member: 1, Level: core.Level4, Cluster: 5, Index: 1, Term: 1, Conf: conf}
		if err := c.Storage.ApplySnapshot(core.Snapshot(1, 1, conf)); err != nil {
			t.Fatal(err)
		}
	} else {
		c.Voters = []uint64{1}
	}
	var err error
	if cfg.Core, err = core.New(c); err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{storage: c.Storage, now: time.UnixMilli(1000), mono: time.Unix(1, 0)}
	cfg.Host, cfg.LastCheckpoint = h, 1
	if cfg.CheckpointRequests == 0 {
		cfg.CheckpointRequests, cfg.CheckpointBytes = 100, 1000
	}
	return New(cfg), h
}

// run takes turns, and makes everything durable at once, until nothing is under way.
func (h *fakeHost) run(t *testing.T, l *Loop) {
	t.Helper()
	for range 20 {
		if err := l.Turn(); err != nil {
			t.Fatal(err)
		}
		h.write(t, l)
	}
}

// write makes the work of the log durable, a millisecond later.
func (h *fakeHost) write(t *testing.T, l *Loop) {
	t.Helper()
	work := h.log
	h.log = nil
	for _, w := range work {
		if w.Append == nil {
			continue
		}
		if w.Install == nil {
			if err := h.storage.Append(w.Append.GetEntries()); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.LogWritten(w.Append.GetResponses(), w.Install, h.now.Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
}

// leadingLoop returns the loop of a sole member that leads.
func leadingLoop(t *testing.T, cfg Config) (*Loop, *fakeHost) {
	t.Helper()
	l, h := newLoop(t, cfg, 1)
	if h.run(t, l); !l.core.Leads() || !l.core.Current() {
		t.Fatal("it does not lead")
	}
	h.batches, h.idle = nil, nil
	return l, h
}
