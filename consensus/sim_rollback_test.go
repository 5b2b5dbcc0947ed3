package consensus

import (
	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// simCopy is a copy of a disk at one moment.
type simCopy struct {
	fs         *vfstest.Mem
	checkpoint *simCheckpoint
}

func allSurvives(n int) int { return n - 1 }

// copy makes a copy of the disk, which replaces an earlier copy.
func (d *simDisk) copy() { d.copied = &simCopy{d.fs.Crash(allSurvives), d.checkpoint} }

// rollBack puts the copy in the place of everything.
func (d *simDisk) rollBack() {
	d.fs, d.after, d.checkpoint = d.copied.fs.Crash(allSurvives), nil, d.copied.checkpoint
}

// rollBack restores a member's data directory from a copy, under the conditions for empty. If there
// is no copy, rollBack copies the directories of all members that have none.
//
// Such a member is found out by what the others know of it. That is not always enough to keep it
// from voting for a leader that lacks what it once acknowledged (ADR 2), so the other voters must
// have all of that themselves.
func (w *simWorld) rollBack(m *simMember, ms int64) bool {
	if m.disk.copied == nil {
		for _, o := range w.members {
			w.copyDisk(o)
		}
		if m.disk.copied != nil {
			w.rollBackSoon(m, ms, 90)
		}
		return m.disk.copied != nil
	}
	if !m.up || !w.canSpare(m) {
		return false
	}
	last, err := m.storage.LastIndex()
	w.must(err)
	term, err := m.storage.Term(last)
	w.must(err)
	for _, id := range w.ahead().core.Conf().GetVoters() {
		o := w.members[id-1]
		if o == m {
			continue
		}
		if has, err := o.storage.Term(last); err != nil || has != term || o.writer.written.Term < m.writer.written.Term {
			return false
		}
	}
	m.stop(true)
	m.emptied = true
	m.disk.rollBack()
	m.storage = raft.NewMemoryStorage()
	w.stats.rolledBack++
	w.after(1+ms, nil, m.restart)
	return true
}

// copyDisk copies the disk of a member that has none yet, unless the member could lead alone with
// the copy.
func (w *simWorld) copyDisk(m *simMember) {
	if !m.up || !m.hasState() || m.emptied || m.disk.crashed || m.disk.copied != nil || len(m.core.Conf().GetVoters()) < 2 {
		return
	}
	meta, err := core.DecodeMeta(m.disk.checkpoint.meta)
	w.must(err)
	if len(meta.Conf.GetVoters()) > 1 {
		m.disk.copy()
	}
}

// greet is the hello of another member, which comes before its messages. It reports whether the
// other member lives.
func (m *simMember) greet(o *simMember, life int) bool {
	if m.greeted[int(o.id)] == life {
		return true
	}
	if !o.up || o.life != life || o.core == nil {
		return false
	}
	m.core.SeeOwnIncarnation(o.core.Meta().Streams[m.id].Incarnation)
	if m.greeted == nil {
		m.greeted = map[int]int{}
	}
	m.greeted[int(o.id)] = life
	return true
}
