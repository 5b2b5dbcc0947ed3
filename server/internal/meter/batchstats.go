package meter

import (
	"cmp"
	"time"

	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
)

// BatchStats collects the counts of requests that are handled together, so that each counter that
// all connections share is touched once for many requests. Each burst has its BatchStats, and so
// has the goroutine that applies. The user of a BatchStats holds the lock of the connection that is
// recorded.
type BatchStats struct {
	meter *Meter

	received, sent      int64 // packets
	bytesIn, watchBytes int64 // bytes that came, and of events
	replies             sums  // sizes
	lastReply           int64
	inQueue             sums // requests that waited on a connection when a write was applied

	runs   []run         // replies that are on the output since the last Settle
	n      int           // replies in runs
	queued int           // of them, reads that waited in a queue
	slow   []slowRequest // reads and syncs, while slow requests are logged

	reads, writes spaceStats
}

// sums summarizes values that are recorded together.
type sums struct{ n, sum, low, high int64 }

func (s *sums) add(v int64) {
	if s.n == 0 || v < s.low {
		s.low = v
	}
	s.n, s.sum, s.high = s.n+1, s.sum+v, max(s.high, v)
}

// into records the values in h as their mean, and forgets them.
func (s *sums) into(h *histogram.Histogram) {
	if s.n > 0 {
		h.RecordSum(s.sum, int(s.n), s.low, s.high)
		*s = sums{}
	}
}

// spaceStats collects consecutive reads or writes in one namespace.
type spaceStats struct {
	space *namespace
	sums
}

// run is a number of requests with the same op that came, and are answered, at the same time.
type run struct {
	op       proto.OpCode
	queued   bool // a read that waited after others in its connection's queue
	received time.Time
	n        int
}

// NewBatchStats returns an empty BatchStats for m that is not pooled.
func NewBatchStats(m *Meter) BatchStats { return BatchStats{meter: m} }

// Received counts a request packet.
func (b *BatchStats) Received() { b.received++ }

// Bytes counts bytes that came.
func (b *BatchStats) Bytes(n int) { b.bytesIn += int64(n) }

// Counts returns how many requests came and how many replies were made since the last Settle.
func (b *BatchStats) Counts() (requests, replies int64) { return b.received, int64(b.n) }

// Answered records a reply of size bytes to a request that was received at that time. queued is set
// for a read that waited.
func (b *BatchStats) Answered(op proto.OpCode, received time.Time, queued bool, size int) {
	b.sent++
	b.replies.add(int64(size))
	b.lastReply = int64(size)
	b.Ran(op, received, queued)
}

// Ran records the duration of a request, which ends with the next Settle.
func (b *BatchStats) Ran(op proto.OpCode, received time.Time, queued bool) {
	b.n++
	if queued {
		b.queued++
	}
	if i := len(b.runs) - 1; i >= 0 && b.runs[i].op == op && b.runs[i].queued == queued && b.runs[i].received.Equal(received) {
		b.runs[i].n++
		return
	}
	b.runs = append(b.runs, run{op, queued, received, 1})
}

// MaybeSlow notes a read or a sync that was answered just now with a zxid, for the log of slow
// requests, which must be enabled. r.Body must not change before Settle.
func (b *BatchStats) MaybeSlow(r Request, zxid proto.Zxid) {
	b.slow = append(b.slow, slowRequest{Request: r, zxid: zxid})
}

// QueueLength records how many requests waited on a connection when one of its writes was applied.
func (b *BatchStats) QueueLength(n int) { b.inQueue.add(int64(n)) }

// Event records a watch event of size bytes.
func (b *BatchStats) Event(size int) {
	b.sent++
	b.watchBytes += int64(size)
}

// Read records a read at path with a reply of size bytes. path is not kept.
func (b *BatchStats) Read(path string, size int) { b.inSpace(&b.reads, path, size) }

// inSpace adds to the namespace of path. inSpace settles s first if that is of another namespace.
func (b *BatchStats) inSpace(s *spaceStats, path string, size int) {
	name := namespaceOf(path)
	if name == "" {
		return
	}
	if s.space == nil || s.space.name != name {
		b.settleSpaces()
		s.space = b.meter.spaces.get(name)
	}
	s.add(int64(len(path) + size))
}

func (b *BatchStats) settleSpaces() {
	if s := &b.reads; s.n > 0 {
		s.into(&s.space.reads)
	}
	if s := &b.writes; s.n > 0 {
		s.into(&s.space.writes)
	}
}

// Write records a change of the znode at path, which then has size bytes of data. path is not kept.
func (b *BatchStats) Write(path string, size int) { b.inSpace(&b.writes, path, size) }

// InSpace counts an event of the request of which body is the record.
func (b *BatchStats) InSpace(e SpaceEvent, op proto.OpCode, body []byte) {
	path, _ := RequestPath(op, body)
	b.meter.spaces.get(cmp.Or(namespaceOf(path), otherNamespaces)).counts[e].Add(1)
}

// Settle adds everything to the meter; b is empty afterwards. now: the replies were on the output.
func (b *BatchStats) Settle(now time.Time) {
	m := b.meter
	m.Add(PacketsReceived, b.received)
	m.Add(PacketsSent, b.sent)
	m.Add(BytesReceived, b.bytesIn)
	m.Add(WatchBytes, b.watchBytes)
	b.received, b.sent, b.bytesIn, b.watchBytes = 0, 0, 0, 0
	if r := &b.replies; r.n > 0 {
		m.Add(ResponseBytes, r.sum)
		m.Replies.recordRun(b.lastReply, r.low, r.high)
		*r = sums{}
	}
	b.inQueue.into(&m.measures[inQueue])
	b.settleSpaces()
	for i := range b.runs {
		r := &b.runs[i]
		took := int64(now.Sub(r.received))
		m.ops.of(r.op).Record(took, r.n)
		switch {
		case r.op.Info().Write:
		case r.queued:
			m.Record(readsQueued, took, r.n)
		default:
			m.Record(readsAtOnce, took, r.n)
		}
	}
	if b.runs = b.runs[:0]; cap(b.runs) > 4096 { // an idle server does not keep the memory of a rush
		b.runs = nil
	}
	if b.queued > 0 {
		m.Record(readsFromQueue, int64(b.queued), 1)
	}
	b.n, b.queued = 0, 0
	for i := range b.slow {
		m.Slow.read(&b.slow[i], now)
	}
	b.slow = nil
}
