package turn

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// Received is another member's checkpoint that arrived completely and verified, to be installed.
type Received struct {
	From, Term  uint64 // the leader that sent it, and the leader's term
	Meta        core.Meta
	Path        string       // of the file; empty in memory
	Load        func() error // reads the file when it is in its place; nil: it was read before
	Install     func() error // makes it the state of the state machine
	Incarnation uint64       // of this server's stream from then on
}

// installer holds a received checkpoint until it is this member's state. There is at most one at a
// time, because all of them would use the same file:
//
//   - arrived: waits until no checkpoint of our own is being written;
//   - prepared: was offered to raft, which may ask for it;
//   - installing: was given to the log, in its place among the appends.
type installer struct {
	arrived    *Received
	prepared   *Received
	installing bool
}

// CheckpointReceived takes a checkpoint that arrived. The checkpoint ends in Host.Installed or
// Host.Discard; until then no other checkpoint may arrive.
func (l *Loop) CheckpointReceived(r *Received) { l.install.arrived = r }

// offerReceived offers raft a checkpoint that arrived, once no checkpoint of our own is being
// written to the same file.
func (l *Loop) offerReceived() error {
	r := l.install.arrived
	if r == nil || l.checkpoint.writing || l.install.installing {
		return nil
	}
	l.install.arrived, l.install.prepared = nil, r
	if !core.ClustersDiffer(r.Meta.Cluster, l.core.Cluster()) {
		self := l.core.ID()
		snapshot := core.Snapshot(r.Meta.Index, r.Meta.Term, r.Meta.Conf)
		err := l.core.Step(&core.Message{To: self, From: r.From, Raft: &raftpb.Message{
			Type: raftpb.MsgSnap.Enum(), To: &self, From: &r.From, Term: &r.Term, Snapshot: snapshot,
		}})
		if err != nil {
			return err
		}
	}
	if err := l.work(); err != nil {
		return err
	}
	if l.install.prepared != nil { // raft has no use for it: it is too old, or of an old leader, or of another ensemble
		l.install.prepared = nil
		return l.host.Discard(r)
	}
	return nil
}

// beginInstall returns the prepared checkpoint for the append whose snapshot has that index. From
// here on no checkpoint of our own is begun: it would use the same file.
func (l *Loop) beginInstall(index uint64) (*Received, error) {
	r := l.install.prepared
	if r == nil || r.Meta.Index != index {
		return nil, fmt.Errorf("consensus: raft installs a checkpoint at entry %d, and none is prepared", index)
	}
	l.install.prepared, l.install.installing = nil, true
	r.Incarnation = l.core.IncarnationAfter(&r.Meta)
	return r, nil
}

// finishInstall switches the core and the state machine to a checkpoint that is durable.
func (l *Loop) finishInstall(r *Received) error {
	l.install.installing = false
	l.checkpoint.last = r.Meta.Index
	l.checkpoint.schedule.reset()
	lost := l.core.Installed(&r.Meta, r.Incarnation)
	err := r.Install()
	l.host.Installed(r, lost)
	return err
}
