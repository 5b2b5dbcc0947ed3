package meter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
)

// Meter holds the counts and measurements since the server's start or the srst word. An event or
// a measure is a constant with its name in a table, so that everything that is counted or measured
// is also shown and reset.
type Meter struct {
	counts
	measures
	ops       opHistograms // durations of requests until their reply is on the output
	spaces    namespaces
	Replies   Sizes
	Proposals Sizes // since this server leads

	// Not reset.
	SyncsWaiting      atomic.Int64  // sync requests of clients
	LostSinceElection atomic.Int64  // sessions that expired in this raft term
	DropShare         atomic.Uint64 // of connect requests at random, as math.Float64bits

	Slow SlowLog
	Hot  HotSampler

	batches sync.Pool // of *BatchStats. Each meter has its own pool, because they remember its namespaces
	// countsAtReset are the counts of consensus at the last reset; nil: there was none.
	countsAtReset atomic.Pointer[consensus.Counts]
}

// Init prepares m. log gets lines about slow requests.
func (m *Meter) Init(log hclog.Logger) {
	m.Slow.counts, m.Slow.log = &m.counts, log
	m.Slow.lines = fair.NewRate(time.Second/maxSlowLines, maxSlowLines, 1)
}

// Batch returns an empty BatchStats. Done takes it back.
func (m *Meter) Batch() *BatchStats {
	if b, ok := m.batches.Get().(*BatchStats); ok {
		return b
	}
	return &BatchStats{meter: m}
}

// Done settles b and keeps it for another Batch. now is when the replies were on the output.
func (m *Meter) Done(b *BatchStats, now time.Time) {
	b.Settle(now)
	m.batches.Put(b)
}

// Led records how long it took until this server could work under another leader.
func (m *Meter) Led(r consensus.LeaderChange) {
	m.Record(searched, int64(r.Searched), 1)
	if r.Unavailable > 0 {
		m.Record(unavailable, int64(r.Unavailable), 1)
		if r.Leading {
			m.Record(leaderUnavailable, int64(r.Unavailable), 1)
		}
	}
	switch {
	case r.Leading:
	case r.Voter:
		m.Record(followerSyncs, int64(r.CaughtUp), 1)
	default:
		m.Record(observerSyncs, int64(r.CaughtUp), 1)
	}
}

// NewTerm resets the values that are measured per raft term.
func (m *Meter) NewTerm() {
	m.Proposals.reset()
	m.LostSinceElection.Store(0)
}

// Reset forgets everything that was counted and measured.
func (m *Meter) Reset() {
	m.counts.reset()
	m.measures.reset()
	m.ops.reset()
	m.spaces.reset()
	m.Replies.reset()
	m.Proposals.reset()
}

// ResetCounts makes CountsSinceReset begin at c.
func (m *Meter) ResetCounts(c consensus.Counts) { m.countsAtReset.Store(&c) }

// CountsSinceReset returns the counts of consensus since ResetCounts. current returns the counts
// since the start.
func (m *Meter) CountsSinceReset(current func() consensus.Counts) consensus.Counts {
	before := m.countsAtReset.Load() // before current is called: a reset in between would make the difference negative
	c := current()
	if before != nil {
		c.Leaders -= before.Leaders
		c.Proposed -= before.Proposed
		c.Resent -= before.Resent
		c.Refused -= before.Refused
		c.Checkpoints -= before.Checkpoints
		c.CaughtUp -= before.CaughtUp
	}
	return c
}

// Latencies returns the latencies of all requests, as [ConnStats.Latencies] does.
func (m *Meter) Latencies() (minMs int64, avgMs float64, maxMs int64) {
	d := histogram.Snapshot(m.ops.choose(func(proto.OpCode) bool { return true })...)
	return milliseconds(time.Duration(d.Min()), d.Mean(), time.Duration(d.Max()))
}
