package consensus

import "time"

const (
	// checkpointRest is how long, in times that the last checkpoint took, no other follows it: so they take a fifth of the time at most.
	checkpointRest = 4
	// checkpointStretch bounds that: with so many times the requests, or bytes, one is made all the same. Else the log, and the time that a start takes,
	// would have no bound.
	checkpointStretch = 4
)

// cadence decides when a checkpoint is made. What it costs grows with the changed keys, and what is set again and again counts once; so under load
// fewer and larger ones are cheaper, and each is a time in which others wait longer. Times are those of the runtime's clock, which does not jump: behind
// a jump back each would have to wait for checkpointStretch.
type cadence struct {
	requests int   // applied since the last capture
	bytes    int64 // of them
	rested   time.Time
}

// note counts what was applied.
func (c *cadence) note(b *Batch) {
	c.requests += len(b.Requests)
	for i := range b.Requests {
		c.bytes += int64(len(b.Requests[i].Payload))
	}
}

// begun counts from nothing again.
func (c *cadence) begun() { c.requests, c.bytes = 0, 0 }

// written notes how long a checkpoint took that is written now.
func (c *cadence) written(now time.Time, took time.Duration) {
	c.rested = now.Add(checkpointRest * took)
}

// due reports whether to make one, if one is wanted after so many requests or bytes.
func (c *cadence) due(now time.Time, requests int, bytes int64) bool {
	switch {
	case c.requests < requests && c.bytes < bytes:
		return false
	case c.requests/checkpointStretch >= requests || c.bytes/checkpointStretch >= bytes:
		return true
	}
	return !now.Before(c.rested)
}
