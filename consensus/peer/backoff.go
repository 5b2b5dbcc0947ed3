package peer

import (
	"math/rand/v2"
	"time"
)

const (
	firstWait, longestWait               = 10 * time.Millisecond, time.Second
	firstWaitRefused, longestWaitRefused = time.Second, 5 * time.Second
)

// backoff computes the wait before the next attempt. The zero value begins with the shortest wait.
type backoff struct{ wait time.Duration }

// next returns the wait after a failure, and doubles the following wait. After a connection that
// lasted at least longestWait the backoff begins again, but not after a shorter connection: a peer
// may accept and then drop connections again and again.
func (b *backoff) next(lived time.Duration, refused bool) time.Duration {
	first, longest := firstWait, longestWait
	if refused {
		first, longest = firstWaitRefused, longestWaitRefused
	}
	if lived >= longestWait {
		b.wait = 0
	}
	b.wait = min(max(2*b.wait, first), longest)
	// Half of the wait is random, so that members that were cut off together don't return in step.
	return b.wait/2 + rand.N(b.wait/2)
}
