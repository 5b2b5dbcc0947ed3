package meter

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/proto"
)

// ApplyTrace measures the stages of the requests that one call of Apply applies. It belongs to the
// goroutine of Apply. The number of clock readings does not depend on the number of requests.
type ApplyTrace struct {
	meter     *Meter
	committed time.Time // when Apply was called
	finished  time.Time // when everything was applied

	// Own requests that came at the same time and follow one another in an entry.
	heard, received time.Time
	n               int

	inBatch, own int // own requests of the entry, and of all entries
	slow         []slowRequest
}

// Role is the part that a server has in its ensemble, as far as measuring depends on it.
type Role uint8

// The roles.
const (
	Alone Role = iota
	Leader
	Follower // or observer
)

// NewApplyTrace returns a trace that records for m.
func NewApplyTrace(m *Meter) ApplyTrace { return ApplyTrace{meter: m} }

// Begin begins a call of Apply.
func (t *ApplyTrace) Begin(now time.Time) { t.committed, t.own = now, 0 }

// Own records a request of one of this server's clients, before it is applied. heard is when its
// last bytes came, received when the server looked at it.
func (t *ApplyTrace) Own(b *consensus.Batch, heard, received time.Time) {
	t.inBatch++
	if !received.Equal(t.received) || !heard.Equal(t.heard) {
		t.endRun(b)
		t.heard, t.received = heard, received
	}
	t.n++
}

// WatchSlow makes Written log the request if it was slow. r.Body must not change before that.
func (t *ApplyTrace) WatchSlow(b *consensus.Batch, r Request, zxid proto.Zxid) {
	t.slow = append(t.slow, slowRequest{r, b.Proposed, b.Synced, zxid})
}

// endRun records the stages that the last own requests have in common.
func (t *ApplyTrace) endRun(b *consensus.Batch) {
	if t.n > 0 && !b.Proposed.IsZero() {
		t.meter.Record(stageRead, int64(t.received.Sub(t.heard)), t.n)
		t.meter.Record(stageQueued, int64(b.Proposed.Sub(t.received)), t.n)
	}
	t.n = 0
}

// EndBatch records an entry that was applied.
func (t *ApplyTrace) EndBatch(b *consensus.Batch, role Role) {
	m, n := t.meter, len(b.Requests)
	t.endRun(b)
	if t.inBatch > 0 {
		m.Record(ownInEntry, int64(t.inBatch), 1)
		if !b.Proposed.IsZero() && !b.Synced.IsZero() {
			m.Record(stageLogged, int64(b.Synced.Sub(b.Proposed)), t.inBatch)
			m.Record(stageCommitted, int64(t.committed.Sub(b.Synced)), t.inBatch)
		}
	}
	t.own += t.inBatch
	t.inBatch = 0
	if n == 0 || b.EntryAt.IsZero() { // it was in the log at the start: its times are those of an earlier process
		return
	}
	m.Record(entrySize, int64(n), 1)
	sinceLeader := func(at time.Time) int64 { return (at.UnixMilli() - b.TimeMs) * int64(time.Millisecond) }
	switch role {
	case Leader:
		m.Add(CommitsLeading, int64(n))
		m.Record(quorumAcks, int64(t.committed.Sub(b.EntryAt)), n)
	case Follower:
		m.Record(proposing, sinceLeader(b.EntryAt), n)
		if !b.Synced.IsZero() {
			m.Record(acking, sinceLeader(b.Synced), n)
		}
		m.Record(committing, sinceLeader(t.committed), n)
	}
	m.Record(propagation, sinceLeader(t.committed), n)
}

// Applied records that everything was applied.
func (t *ApplyTrace) Applied(now time.Time) {
	t.finished = now
	took := int64(now.Sub(t.committed))
	m := t.meter
	m.Record(applying, took, 1)
	m.Record(stageApplied, took, t.own)
}

// Written records that the replies went to the sockets. Who does not read gets the rest later.
func (t *ApplyTrace) Written(clock func() time.Time) {
	if t.own == 0 {
		return
	}
	now := clock()
	t.meter.Record(stageWritten, int64(now.Sub(t.finished)), t.own)
	for i := range t.slow {
		t.meter.Slow.write(t, &t.slow[i], now)
	}
	clear(t.slow)
	t.slow = t.slow[:0]
}
