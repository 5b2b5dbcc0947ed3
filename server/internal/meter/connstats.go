package meter

import (
	"time"

	"github.com/gozkd/gozkd/proto"
)

// ConnStats counts a connection's requests for the words cons and stat. It is not synchronized.
type ConnStats struct {
	Since          time.Time // when the connection was accepted
	Sent, Received int64     // packets
	LastOp         proto.OpCode
	LastXid        int32      // negative: there is none
	LastZxid       proto.Zxid // the highest in a reply
	LastReply      time.Time
	LastLatency    time.Duration
	Sampling       SampleSkip // for HotSampler
	Rhythm         Rhythm

	count           int64 // of latencies
	min, max, total time.Duration
}

// Replied records that n requests took that long, until at.
func (s *ConnStats) Replied(took time.Duration, n int64, at time.Time) {
	s.LastLatency, s.LastReply = took, at
	if s.count == 0 || took < s.min {
		s.min = took
	}
	s.max = max(s.max, took)
	s.total += took * time.Duration(n)
	s.count += n
}

// Latencies returns the smallest and the largest latency, rounded down and up to milliseconds, so
// that the average in milliseconds is between them.
func (s *ConnStats) Latencies() (minMs int64, avgMs float64, maxMs int64) {
	return milliseconds(s.min, float64(s.total)/float64(max(s.count, 1)), s.max)
}

func milliseconds(least time.Duration, mean float64, most time.Duration) (leastMs int64, meanMs float64, mostMs int64) {
	return least.Milliseconds(), mean / float64(time.Millisecond), (most + time.Millisecond - 1).Milliseconds()
}

// Reset forgets everything except Since and Rhythm, like the crst word.
func (s *ConnStats) Reset() {
	*s = ConnStats{
		Since: s.Since, LastOp: proto.OpNotification, LastXid: -1, LastZxid: proto.NoZxid,
		Sampling: s.Sampling, Rhythm: s.Rhythm,
	}
}

// Rhythm is when a client sends. Times are durations since its connection was accepted.
type Rhythm struct {
	Longest   time.Duration // between two moments at which bytes came
	Intervals int           // between pings without another request between
	heard     time.Duration
	pinged    time.Duration // of the last ping; 0: another request came since
	pings     time.Duration // sum of Intervals
	longest   time.Duration // of Intervals
}

// Heard records that bytes came.
func (r *Rhythm) Heard(at time.Duration) { r.Longest, r.heard = max(r.Longest, at-r.heard), at }

// Request records a request.
func (r *Rhythm) Request(ping bool, at time.Duration) {
	if ping && r.pinged > 0 {
		r.Intervals++
		r.pings, r.longest = r.pings+at-r.pinged, max(r.longest, at-r.pinged)
	}
	r.pinged = 0
	if ping {
		r.pinged = at
	}
}

// PingEvery returns the average interval between pings, without the longest, in which the client or
// the server may have stood still; 0: there are too few.
func (r *Rhythm) PingEvery() time.Duration {
	return (r.pings - r.longest) / time.Duration(max(1, r.Intervals-1))
}
