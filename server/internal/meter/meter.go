package meter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
)

// Meter holds the counters and histograms of a server since its start or the srst word. Times in
// histograms are in nanoseconds.
type Meter struct {
	Traffic   Traffic
	Conns     Connections
	Requests  Requests
	Writes    Writes
	Log       Log
	Sessions  Sessions
	Watchers  Watchers
	Elections Elections

	DigestsDiffer Counter      // members whose state differed
	SyncsWaiting  atomic.Int64 // sync requests of clients that wait; not reset

	Slow SlowLog
	Hot  HotSampler

	spaces  namespaces
	batches sync.Pool // of *BatchStats. Each meter has its own pool, because they remember its namespaces
	// countsAtReset are the counts of consensus at the last reset; nil: there was none.
	countsAtReset atomic.Pointer[consensus.Counts]
}

// Traffic counts packets and bytes.
type Traffic struct {
	Received, Sent                           Counter // packets
	BytesReceived, ResponseBytes, WatchBytes Counter
	Responses                                Sizes // of replies
}

// Connections counts events of clients' connections before they have a session, and when they end.
type Connections struct {
	Requests, Reattached, Broken, Rejected Counter
	NotServed, Sessionless                 Counter
	AuthFailed, Evicted, TooManyWatches    Counter
	HandshakesFailed, HandshakesExceeded   Counter             // of TLS; exceeded: closed because there were too many
	PlainLocal, PlainRemote                Counter             // connections without TLS, from this machine and from others
	DropShare                              atomic.Uint64       // of connect requests at random, as math.Float64bits; not reset
	TokensMissing                          histogram.Histogram // of the throttle, after a connect request
}

// Requests measures requests until their reply is on the output.
type Requests struct {
	ops                      opHistograms
	readsAtOnce, readsQueued histogram.Histogram
	readsFromQueue, inQueue  histogram.Histogram // how many
	Throttled                histogram.Histogram // how long connections were not read because too many writes were under way
	ThrottleWaits            Counter
	Expensive                Counter // refused, because applying them would have taken too long
	ThrottledOps             Counter // that were answered with ErrThrottledOp
	Stale, StaleDropped      Counter // that waited for others for too long, applied or dropped
	StaleReplies             Counter // for which the connection was closed
	LargeRejected            Counter
}

// Writes measures the way of writes through consensus.
type Writes struct {
	stages                                     [nStages]histogram.Histogram // of the writes of this server's clients
	propagation, proposing, acking, committing histogram.Histogram          // since the leader's clock
	quorumAcks                                 histogram.Histogram
	entries, waiting                           histogram.Histogram // requests of an entry, and own requests of an entry
	applying                                   histogram.Histogram // one call of Apply
	commits                                    Counter             // on the leader: requests that were committed
	Proposals                                  Sizes               // since this server leads
}

// Log measures the disk.
type Log struct {
	Syncs, Checkpoints histogram.Histogram
	AppendsPerSync     histogram.Histogram
	Opening            histogram.Histogram // of the data at the start
	SlowSyncs          Counter
}

// Sessions counts events of sessions.
type Sessions struct {
	Expired, Revalidated Counter
	LostSinceElection    atomic.Int64 // sessions that expired in this raft term; not reset
}

// Watchers measures for how many connections an event was, by the type of the event.
type Watchers struct{ created, deleted, changed, children histogram.Histogram }

// Elections measures how long changes of the leader take.
type Elections struct {
	searched, unavailable, leaderUnavailable histogram.Histogram
	followerSyncs, observerSyncs             histogram.Histogram
}

// Init prepares a meter for use. now is the clock of all events, and log gets the lines about slow
// requests.
func (m *Meter) Init(now func() time.Time, log hclog.Logger) { m.Slow.init(now, log) }

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

// Of returns the histogram for events of the type.
func (w *Watchers) Of(t proto.EventType) *histogram.Histogram {
	switch t {
	case proto.EventCreated:
		return &w.created
	case proto.EventDeleted:
		return &w.deleted
	case proto.EventDataChanged:
		return &w.changed
	}
	return &w.children
}

// Led records how long it took until this server could work under another leader.
func (e *Elections) Led(r consensus.LeaderChange) {
	e.searched.Record(int64(r.Searched), 1)
	if r.Unavailable > 0 {
		e.unavailable.Record(int64(r.Unavailable), 1)
		if r.Leading {
			e.leaderUnavailable.Record(int64(r.Unavailable), 1)
		}
	}
	switch {
	case r.Leading:
	case r.Voter:
		e.followerSyncs.Record(int64(r.CaughtUp), 1)
	default:
		e.observerSyncs.Record(int64(r.CaughtUp), 1)
	}
}

// NewTerm resets the values that are measured per raft term.
func (m *Meter) NewTerm() {
	m.Writes.Proposals.Reset()
	m.Sessions.LostSinceElection.Store(0)
}

// Reset forgets everything that was counted and measured.
func (m *Meter) Reset() {
	t, c, q, w, s := &m.Traffic, &m.Conns, &m.Requests, &m.Writes, &m.Sessions
	for _, r := range []interface{ Reset() }{
		&t.Received, &t.Sent, &t.BytesReceived, &t.ResponseBytes, &t.WatchBytes, &t.Responses,
		&c.Requests, &c.Reattached, &c.Broken, &c.Rejected, &c.NotServed, &c.Sessionless, &c.AuthFailed, &c.HandshakesFailed, &c.HandshakesExceeded, &c.PlainLocal, &c.PlainRemote, &c.Evicted, &c.TooManyWatches, &c.TokensMissing,
		&q.ops, &q.readsAtOnce, &q.readsQueued, &q.readsFromQueue, &q.inQueue, &q.Throttled, &q.ThrottleWaits, &q.Expensive,
		&q.ThrottledOps, &q.Stale, &q.StaleDropped, &q.StaleReplies, &q.LargeRejected,
		&w.propagation, &w.proposing, &w.acking, &w.committing, &w.quorumAcks, &w.entries, &w.waiting, &w.applying,
		&w.commits, &w.Proposals, &s.Expired, &s.Revalidated, &m.DigestsDiffer, &m.Slow.requests, &m.spaces,
		&m.Log.Syncs, &m.Log.Checkpoints, &m.Log.AppendsPerSync, &m.Log.Opening, &m.Log.SlowSyncs,
		&m.Watchers.created, &m.Watchers.deleted, &m.Watchers.changed, &m.Watchers.children,
		&m.Elections.searched, &m.Elections.unavailable, &m.Elections.leaderUnavailable,
		&m.Elections.followerSyncs, &m.Elections.observerSyncs,
	} {
		r.Reset()
	}
	for i := range w.stages {
		w.stages[i].Reset()
	}
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

// Latencies returns the latencies of all requests in milliseconds.
func (m *Meter) Latencies() (minMs int64, avgMs float64, maxMs int64) {
	d := histogram.Snapshot(m.Requests.ops.choose(func(proto.OpCode) bool { return true })...)
	ms := int64(time.Millisecond)
	return d.Min() / ms, d.Mean() / float64(ms), d.Max() / ms
}
