package turn

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// applyTrace records when entries, and the requests of this member, reached each stage on their way
// to apply. All times are readings of Host.Now.
type applyTrace struct {
	incarnation uint64
	forwarded   marks // by number in this member's stream: sent to the leader
	entryAt     marks // by index: made here into an entry, or received from the leader
	synced      marks // by index: in this member's log
}

// noteOutput records the entries that go to the log and the requests that go to the leader.
func (t *applyTrace) noteOutput(out *core.Output, incarnation uint64, now time.Time) {
	if t.incarnation != incarnation {
		t.incarnation = incarnation
		t.forwarded.clear()
	}
	for i := range out.Messages {
		if g := out.Messages[i].Forward; g != nil {
			t.forwarded.first(g.Last(), now)
		}
	}
	for _, m := range out.Appends {
		if e := m.GetEntries(); len(e) > 0 {
			if len(t.entryAt.list) == 0 { // an earlier process wrote the entries before: their times are not known
				t.entryAt.latest(e[0].GetIndex()-1, time.Time{})
			}
			t.entryAt.latest(e[len(e)-1].GetIndex(), now)
		}
	}
}

func (t *applyTrace) noteWritten(m *raftpb.Message, at time.Time) {
	if m.GetType() == raftpb.MsgStorageAppendResp && m.GetIndex() > 0 {
		t.synced.latest(m.GetIndex(), at)
	}
}

// stamp writes the known times into the batches.
func (t *applyTrace) stamp(out *core.Output) {
	for i := range out.Batches {
		b := &out.Batches[i]
		b.Synced = t.synced.at(b.Index)
		b.EntryAt = t.entryAt.at(b.Index)
		if out.FirstOwn[i] == 0 {
			continue
		}
		if b.Proposed = t.forwarded.at(out.FirstOwn[i]); b.Proposed.IsZero() {
			b.Proposed = b.EntryAt
		}
	}
}

// marks records when a rising number was reached. Numbers below one looked up are forgotten.
type marks struct {
	list []mark
	from int // list[:from] is forgotten
}

type mark struct {
	upTo uint64
	at   time.Time
}

// latest records that all numbers up to upTo were reached. If upTo was reached before, the log was
// truncated: later marks are discarded.
func (m *marks) latest(upTo uint64, at time.Time) {
	for len(m.list) > m.from && m.list[len(m.list)-1].upTo >= upTo {
		m.list = m.list[:len(m.list)-1]
	}
	m.push(upTo, at)
}

// first records that all numbers up to upTo were reached, unless that was recorded before.
func (m *marks) first(upTo uint64, at time.Time) {
	if len(m.list) == m.from || m.list[len(m.list)-1].upTo < upTo {
		m.push(upTo, at)
	}
}

func (m *marks) push(upTo uint64, at time.Time) {
	if m.from > 16 && 2*m.from > len(m.list) {
		m.list, m.from = m.list[:copy(m.list, m.list[m.from:])], 0
	}
	m.list = append(m.list, mark{upTo, at})
}

// at returns when the number was reached; zero: not known.
func (m *marks) at(number uint64) time.Time {
	for m.from < len(m.list) && m.list[m.from].upTo < number {
		m.from++
	}
	if m.from == len(m.list) {
		return time.Time{}
	}
	return m.list[m.from].at
}

func (m *marks) clear() { m.list, m.from = m.list[:0], 0 }
