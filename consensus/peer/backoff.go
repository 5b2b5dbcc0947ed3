package peer

import (
	"math/rand/v2"
	"time"
)

const (
	firstWait, longestWait               = 10 * time.Millisecond, time.Second
	firstWaitRefused, longestWaitRefused = time.Second, 5 * time.Second
)

// backoff says how long to wait before the next try. The zero value begins anew.
type backoff struct{ wait time.Duration }

// next returns the wait after a failure, and doubles it for the one after. A connection that lived as long as the longest wait
// was a good one, after which it begins anew; a shorter life may be that of a peer that drops us again and again.
func (b *backoff) next(lived time.Duration, refused bool) time.Duration {
	first, longest := firstWait, longestWait
	if refused {
		first, longest = firstWaitRefused, longestWaitRefused
	}
	if lived >= longestWait {
		b.wait = 0
	}
	b.wait = min(max(2*b.wait, first), longest)
	// Half of it is left to chance: members that were cut off together don't return in step.
	return b.wait/2 + rand.N(b.wait/2)
}
