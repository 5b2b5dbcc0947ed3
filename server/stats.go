package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// stats are the server's counters since the start or the srst word.
type stats struct {
	received, sent atomic.Int64 // packets
	connsDropped   atomic.Int64
	authFailed     atomic.Int64
	expired        atomic.Int64
	slowSyncs      atomic.Int64
	syncs          latency
	checkpoints    latency
	latency        latency
	proposals      sizes // since this server leads

	// Not reset:
	syncsWait atomic.Int64 // sync requests of clients that wait
	traceMask atomic.Int64 // of the words gtmk and stmk
}

func (s *stats) reset() {
	for _, n := range []*atomic.Int64{&s.received, &s.sent, &s.connsDropped, &s.authFailed, &s.expired, &s.slowSyncs} {
		n.Store(0)
	}
	for _, l := range []*latency{&s.syncs, &s.checkpoints, &s.latency} {
		l.reset()
	}
	s.proposals.reset()
}

// sizes are those of the requests that were applied while this server leads, in bytes, as they are in the log.
type sizes struct {
	mu             sync.Mutex
	some           bool
	last, min, max int
}

func (z *sizes) note(n int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.some || n < z.min {
		z.min = n
	}
	z.some, z.last, z.max = true, n, max(z.max, n)
}

func (z *sizes) reset() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.some, z.last, z.min, z.max = false, 0, 0, 0
}

// read returns -1 three times while there are none, as ZooKeeper does.
func (z *sizes) read() (last, low, high int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.some {
		return -1, -1, -1
	}
	return z.last, z.min, z.max
}

// latency is what ZooKeeper tells of how long things take: minimum, average, maximum, in milliseconds.
type latency struct {
	mu              sync.Mutex
	count           int64
	min, max, total time.Duration
}

func (l *latency) note(d time.Duration, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.total += d * time.Duration(n)
	l.count += n
}

func (l *latency) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.min, l.max, l.total = 0, 0, 0, 0
}

// read returns min and max in whole milliseconds and the average in milliseconds.
func (l *latency) read() (minMs int64, avgMs float64, maxMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > 0 {
		avgMs = float64(l.total) / float64(l.count) / float64(time.Millisecond)
	}
	return l.min.Milliseconds(), avgMs, l.max.Milliseconds()
}

// sum returns how many there were and what they took together, in whole milliseconds.
func (l *latency) sum() (n, totalMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.total.Milliseconds()
}
