package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// stats are the server's counters since the start or the srst word.
type stats struct {
	received, sent  atomic.Int64 // packets
	connsDropped    atomic.Int64
	authFailed      atomic.Int64
	expired         atomic.Int64
	syncs           atomic.Int64
	syncNanos       atomic.Int64
	slowSyncs       atomic.Int64
	checkpoints     atomic.Int64
	checkpointNanos atomic.Int64
	latency         latency
}

// latency is what ZooKeeper tells of request latencies: minimum, average, maximum, in milliseconds.
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
