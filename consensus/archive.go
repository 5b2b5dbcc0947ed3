package consensus

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// LogEntry is an entry of the replicated log. Its content must not be changed.
type LogEntry struct {
	Index, Term uint64
	// Time is the leader's clock, for an entry with a batch or a feature level; otherwise zero.
	Time time.Time
	Data []byte // as in the write-ahead log; see docs/reference/formats.md, "Log entry"

	entry *raftpb.Entry
}

// DecodeLogEntry returns the entry with an index and its data. The entry shares the data.
func DecodeLogEntry(index uint64, data []byte) (LogEntry, error) {
	e, err := core.DecodeEntry(index, data)
	if err != nil {
		return LogEntry{}, err
	}
	return logEntry(e, data), nil
}

func logEntry(e *raftpb.Entry, data []byte) LogEntry {
	l := LogEntry{Index: e.GetIndex(), Term: e.GetTerm(), Data: data, entry: e}
	if ms := core.EntryTime(e); ms > 0 {
		l.Time = time.UnixMilli(ms)
	}
	return l
}

// ErrCompacted means that this node does not have an entry of the log any more.
var ErrCompacted = errors.New("consensus: the entry is not in the log any more")

// Log returns the applied entries from an index on, as many as have size bytes, but at least one if
// there is one. It costs the node nothing: entries are shared with the log in memory. If the first
// entry was dropped, the error is ErrCompacted.
func (n *Node) Log(from uint64, size int64) ([]LogEntry, error) {
	applied, storage := n.Status().Applied, n.log.writer.storage
	if from == 0 || from > applied {
		return nil, nil
	}
	entries, err := storage.Entries(from, applied+1, uint64(size))
	switch {
	case errors.Is(err, raft.ErrCompacted):
		return nil, fmt.Errorf("%w: entry %d", ErrCompacted, from)
	case errors.Is(err, raft.ErrUnavailable): // a checkpoint of another member is being installed
		return nil, nil
	case err != nil:
		return nil, err
	}
	log := make([]LogEntry, 0, len(entries))
	for _, e := range entries {
		log = append(log, logEntry(e, core.AppendEntry(nil, e)))
	}
	return log, nil
}

// Follow appends, commits and applies entries that the ensemble of this node's state has committed.
// Config.Follows must be set. Entries that are applied are left out; if the others do not follow
// these, Follow does nothing. The result is closed when the last entry is applied. Follow must not
// be called again before that.
func (n *Node) Follow(entries []LogEntry) (applied <-chan struct{}) {
	f := &followed{done: make(chan struct{})}
	raw := make([]*raftpb.Entry, 0, len(entries))
	for _, e := range entries {
		raw, f.last = append(raw, e.entry), e.Index
	}
	n.inbox.events.put(nodeCall(func(n *Node) error {
		n.following = f
		return n.core.Follow(raw)
	}))
	return f.done
}

type followed struct {
	last uint64 // index of the last entry
	done chan struct{}
}

// KeepFrom says that all entries before an index are archived. Later entries are kept, up to
// Config.ArchiveBytes.
func (n *Node) KeepFrom(index uint64) {
	n.inbox.events.put(coreCall(func(c *core.Core) { c.Retention.KeepFrom(index) }))
}

// Cluster returns the number that identifies the ensemble; 0: not known yet.
func (n *Node) Cluster() uint64 { return n.network.cluster.Load() }

// ReplayLog restores sm from a checkpoint file and applies entries, the first of which follows the
// checkpoint. Entries that begin or continue elsewhere are an error.
func ReplayLog(path string, entries iter.Seq2[LogEntry, error], sm StateMachine) (SavedState, error) {
	held, err := ReadCheckpoint(path, sm)
	if err != nil {
		return SavedState{}, err
	}
	r := recovered{
		meta: held.meta, state: core.LogState{Term: held.Term, Commit: held.Index, Incarnation: math.MaxUint64 - 1},
	}
	p, err := r.replayer(func(_ *raftpb.Entry, batches []Batch) { sm.Apply(batches) })
	if err != nil {
		return SavedState{}, err
	}
	if err := p.follow(entries); err != nil {
		return SavedState{}, err
	}
	return p.state(), nil
}

// replayer hands out the batches of entries, from a core that is used for nothing else.
type replayer struct {
	core    *core.Core
	handOut func(e *raftpb.Entry, batches []Batch)
	from    uint64 // index of the checkpoint
}

// replayer returns a replayer that begins with the checkpoint. No entry may be of an incarnation
// after that of the state.
func (r *recovered) replayer(handOut func(*raftpb.Entry, []Batch)) (*replayer, error) {
	storage := raft.NewMemoryStorage()
	if err := r.fill(storage); err != nil {
		return nil, err
	}
	c, err := core.New(core.Config{
		ID: r.meta.Member, Incarnation: r.state.Incarnation + 1, Storage: storage, Meta: r.meta,
		Retention: core.DefaultRetention(math.MaxInt64),
		Random:    func() uint64 { return 0 }, // for a stream that this core never has
		Logger:    raftLogger{hclog.NewNullLogger()},
	})
	return &replayer{c, handOut, r.meta.Index}, err
}

func (p *replayer) apply(e *raftpb.Entry) error {
	batches, err := p.core.Replay(e)
	if err == nil {
		p.handOut(e, batches)
	}
	return err
}

func (p *replayer) follow(entries iter.Seq2[LogEntry, error]) error {
	for e, err := range entries {
		if err != nil {
			return err
		}
		if e.Index != p.core.Applied()+1 || e.Term < p.core.AppliedTerm() {
			return fmt.Errorf("consensus: entry %d of term %d cannot follow entry %d of term %d",
				e.Index, e.Term, p.core.Applied(), p.core.AppliedTerm())
		}
		if l := core.EntryLevel(e.entry); l != 0 {
			if err := core.SupportedLevels.Check(l, fmt.Sprintf("entry %d of the log", e.Index)); err != nil {
				return err
			}
		}
		if err := p.apply(e.entry); err != nil {
			return err
		}
		p.core.ForgetReplayed()
	}
	return nil
}

func (p *replayer) state() SavedState {
	s := savedStateOf(p.core.Meta())
	s.Checkpoint = p.from
	return s
}
