package server

import (
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// stats are the server's counters and histograms since the start or the srst word. Times in histograms are nanoseconds.
type stats struct {
	received, sent                           counter // packets
	bytesReceived, responseBytes, watchBytes counter
	responses                                sizes // of replies

	connRequests, connsReattached, connsBroken, connsRejected counter
	connsNotServed, sessionless                               counter
	authFailed, expired, revalidated                          counter
	throttleWaits                                             counter
	commits                                                   counter // leading: requests that were committed
	digestsDiffer                                             counter
	slowSyncs, slowRequests                                   counter
	proposals                                                 sizes // since this server leads

	ops                                        opHistograms // until the reply is on the output
	readsAtOnce, readsQueued                   histogram
	readsFromQueue, inQueue                    histogram // how many
	throttled                                  histogram
	stages                                     [nStages]histogram // of the writes of this server's clients
	propagation, proposing, acking, committing histogram          // from the leader's clock on
	quorumAcks                                 histogram
	entries, waiting, appends                  histogram // requests of an entry, own ones among them; appends that one sync was for
	applying                                   histogram // a call of Apply
	syncs, checkpoints                         histogram
	opening                                    histogram // of the data at the start
	created, deleted, changed, children        histogram // connections that an event was for
	elections, unavailable, leaderUnavailable  histogram
	followerSyncs, observerSyncs               histogram
	spaces                                     namespaces

	// Not reset:
	lostSince atomic.Int64 // sessions that expired in this raft term
	syncsWait atomic.Int64 // sync requests of clients that wait
	traceMask atomic.Int64 // of the words gtmk and stmk
}

// stage is a part of a write's way.
type stage int

// The stages, in their order. docs/reference/monitoring.md says where each ends.
const (
	stageRead stage = iota
	stageQueued
	stageLogged
	stageCommitted
	stageApplied
	stageWritten
	nStages
)

var stageNames = [nStages]string{"read", "queued", "logged", "committed", "applied", "written"}

// counter counts what happens.
type counter struct{ atomic.Int64 }

// more adds, and leaves a counter alone that nothing is added to.
func (c *counter) more(n int64) {
	if n != 0 {
		c.Add(n)
	}
}

// opHistograms has a histogram for each op of proto's table.
type opHistograms [proto.NumOps]histogram

func (o *opHistograms) of(op proto.OpCode) *histogram { return &o[op.Index()] }

// each calls f for each op that has a measurement.
func (o *opHistograms) each(f func(op proto.OpCode, h *histogram)) {
	for info := range proto.Ops() {
		if h := o.of(info.Code); h.counts.Load() != nil {
			f(info.Code, h)
		}
	}
}

// choose returns those of some ops.
func (o *opHistograms) choose(of func(proto.OpCode) bool) (hs []*histogram) {
	o.each(func(op proto.OpCode, h *histogram) {
		if of(op) {
			hs = append(hs, h)
		}
	})
	return hs
}

func (s *stats) reset() {
	for _, n := range []*counter{
		&s.received, &s.sent, &s.bytesReceived, &s.responseBytes, &s.watchBytes, &s.connRequests, &s.connsReattached, &s.connsBroken,
		&s.connsRejected, &s.connsNotServed, &s.sessionless, &s.authFailed, &s.expired, &s.revalidated, &s.throttleWaits, &s.commits,
		&s.digestsDiffer, &s.slowSyncs, &s.slowRequests,
	} {
		n.Store(0)
	}
	for i := range s.ops {
		s.ops[i].reset()
	}
	for i := range s.stages {
		s.stages[i].reset()
	}
	for _, h := range []*histogram{
		&s.readsAtOnce, &s.readsQueued, &s.readsFromQueue, &s.inQueue, &s.throttled, &s.propagation, &s.proposing, &s.acking,
		&s.committing, &s.quorumAcks, &s.entries, &s.waiting, &s.appends, &s.applying, &s.syncs, &s.checkpoints, &s.opening, &s.created,
		&s.deleted, &s.changed, &s.children, &s.elections, &s.unavailable, &s.leaderUnavailable, &s.followerSyncs, &s.observerSyncs,
	} {
		h.reset()
	}
	s.spaces.reset()
	s.responses.reset()
	s.proposals.reset()
}

// sizes are the last, the smallest and the largest of some lengths in bytes. They are kept plus one; 0: none.
type sizes struct{ last, low, top atomic.Int64 }

// noteRun notes some lengths.
func (z *sizes) noteRun(last, low, top int64) {
	z.last.Store(last + 1)
	for old := z.low.Load(); (old == 0 || low+1 < old) && !z.low.CompareAndSwap(old, low+1); {
		old = z.low.Load()
	}
	for old := z.top.Load(); top+1 > old && !z.top.CompareAndSwap(old, top+1); {
		old = z.top.Load()
	}
}

func (z *sizes) reset() {
	z.last.Store(0)
	z.low.Store(0)
	z.top.Store(0)
}

// read returns -1 three times while there are none, as ZooKeeper does.
func (z *sizes) read() (last, low, high int64) {
	return z.last.Load() - 1, z.low.Load() - 1, z.top.Load() - 1
}

// latency is what the cons word tells of how long the requests of a connection take. conn.mu guards it.
type latency struct {
	count           int64
	min, max, total time.Duration
}

func (l *latency) note(d time.Duration, n int64) {
	if l.count == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.total += d * time.Duration(n)
	l.count += n
}

// read returns min and max in whole milliseconds and the average in milliseconds.
func (l *latency) read() (minMs int64, avgMs float64, maxMs int64) {
	if l.count > 0 {
		avgMs = float64(l.total) / float64(l.count) / float64(time.Millisecond)
	}
	return l.min.Milliseconds(), avgMs, l.max.Milliseconds()
}

// latencies returns those of all requests, in milliseconds as latency.read does.
func (s *stats) latencies() (minMs int64, avgMs float64, maxMs int64) {
	d := snapshot(s.ops.choose(func(proto.OpCode) bool { return true })...)
	ms := int64(time.Millisecond)
	return d.min() / ms, d.mean() / float64(ms), d.max() / ms
}
