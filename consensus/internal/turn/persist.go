package turn

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// LogWork is a task of the log.
type LogWork struct {
	Append        *raftpb.Message
	Install       *Received // the checkpoint that the append's snapshot stands for
	Mark          *core.Mark
	Compact       uint64 // drop the entries up to this index, which a checkpoint covers
	PersistCommit bool   // the commit index is worth a write, because it decides which members vote
}

// persist gives appends to the log. A commit index alone is not worth waking the log, so it waits
// for the next append.
func (l *Loop) persist(appends []*raftpb.Message, idle bool) error {
	awaited, mark := false, l.core.Mark()
	marking := mark != l.persistedMark
	if marking && !mark.Outdated {
		l.mark(mark) // what follows relies on it
	}
	for _, m := range appends {
		w := LogWork{Append: m}
		if m.GetSnapshot() != nil {
			var err error
			if w.Install, err = l.beginInstall(m.GetSnapshot().GetMetadata().GetIndex()); err != nil {
				return err
			}
		}
		l.pendingLog = append(l.pendingLog, w)
		awaited = awaited || len(m.GetEntries()) > 0 || len(m.GetResponses()) > 0
		l.log.awaited += len(m.GetResponses())
	}
	if conf := l.core.Conf(); conf != l.persistedConf {
		// The committed entries decide which members vote. If all members stopped before the next
		// append, those that come back would ask for votes of the previous members, of which too
		// few may be left.
		l.persistedConf = conf
		l.pendingLog = append(l.pendingLog, LogWork{PersistCommit: true})
		awaited = true
	}
	if marking && mark.Outdated {
		l.mark(mark) // when it is durable, everything before it is
	}
	if !awaited && !marking {
		return nil
	}
	work := l.pendingLog
	l.pendingLog = l.pendingLog[:0]
	defer clear(work)
	return l.host.WriteLog(work, idle)
}

func (l *Loop) mark(m core.Mark) {
	l.persistedMark = m
	a := l.core.Admission.MarkAppend()
	l.log.awaited += len(a.GetResponses())
	l.pendingLog = append(l.pendingLog, LogWork{Mark: &m, Append: a})
}

// LogWritten passes on the responses of appends that are durable since the instant at. If installed
// is not nil, these appends have put it in the place of checkpoint and log.
func (l *Loop) LogWritten(responses []*raftpb.Message, installed *Received, at time.Time) error {
	l.log.durable(len(responses))
	if installed != nil {
		if err := l.finishInstall(installed); err != nil {
			return err
		}
	}
	for _, m := range responses {
		if m.GetTo() != l.core.ID() {
			if !l.core.Relays.Withheld(m) && !l.core.Acks.Held(m) {
				l.host.Send(core.Message{To: m.GetTo(), From: l.core.ID(), Raft: m})
			}
			continue
		}
		l.trace.noteWritten(m, at)
		if err := l.core.Persisted(m); err != nil {
			return err
		}
	}
	return nil
}
