package meter

import (
	"time"

	"github.com/gozkd/gozkd/proto"
)

// ConnStats counts a connection's requests for the words cons and stat. ConnStats is not safe for
// concurrent use.
type ConnStats struct {
	Since          time.Time // when the connection was accepted
	Sent, Received int64     // packets
	LastOp         proto.OpCode
	LastXid        int32      // negative: there is none
	LastZxid       proto.Zxid // the highest in a reply
	LastReply      time.Time
	LastLatency    time.Duration
	Sampling       SampleSkip // for HotSampler

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

// Latencies returns the smallest and the largest latency in whole milliseconds and the average in
// milliseconds.
func (s *ConnStats) Latencies() (minMs int64, avgMs float64, maxMs int64) {
	if s.count > 0 {
		avgMs = float64(s.total) / float64(s.count) / float64(time.Millisecond)
	}
	return s.min.Milliseconds(), avgMs, s.max.Milliseconds()
}

// Reset forgets everything except Since, like the crst word.
func (s *ConnStats) Reset() {
	*s = ConnStats{Since: s.Since, LastOp: proto.OpNotification, LastXid: -1, LastZxid: proto.NoZxid, Sampling: s.Sampling}
}
