package turn

import (
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

const (
	// checkpointRest times the duration of the last checkpoint is the time until the next may
	// begin, so checkpoints take at most a fifth of the time.
	checkpointRest = 4
	// checkpointStretch bounds that: after this many times the configured requests or bytes a
	// checkpoint begins anyway. Otherwise the log, and the duration of a start, would be unbounded.
	checkpointStretch = 4
)

// schedule decides when to write a checkpoint. The cost of a checkpoint grows with the number of
// changed keys, and a key that is set again and again counts once. Under load, fewer and larger
// checkpoints are therefore cheaper, and other work waits longer during each of them. The clock
// must not jump: after a jump back each checkpoint would have to wait for checkpointStretch.
type schedule struct {
	requests  int   // applied since the last capture
	bytes     int64 // of these requests
	notBefore time.Time
}

// offset lets members with different ids begin their checkpoints at different times.
func (s *schedule) offset(id uint64, requests int, bytes int64) {
	s.requests = int(id%8) * requests / 8
	s.bytes = int64(id%8) * bytes / 8
}

func (s *schedule) note(b *core.Batch) {
	s.requests += len(b.Requests)
	for i := range b.Requests {
		s.bytes += int64(len(b.Requests[i].Payload))
	}
}

func (s *schedule) reset() { s.requests, s.bytes = 0, 0 }

// written notes the end of a checkpoint, and how long it took.
func (s *schedule) written(now time.Time, took time.Duration) {
	s.notBefore = now.Add(checkpointRest * took)
}

// due reports whether to write a checkpoint now, if one is due after this many requests or bytes.
func (s *schedule) due(now time.Time, requests int, bytes int64) bool {
	switch {
	case s.requests < requests && s.bytes < bytes:
		return false
	case s.requests/checkpointStretch >= requests || s.bytes/checkpointStretch >= bytes:
		return true
	}
	return !now.Before(s.notBefore)
}
