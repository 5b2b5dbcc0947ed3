package recipes

import (
	"math/rand/v2"
	"time"
)

// RetryPolicy says whether to try again what failed because of the connection, and after what pause.
//
//	attempt  how many tries were made, at least 1
//	elapsed  since the first began
//
// The server's own answers, such as zk.ErrNoNode, are never tried again, and what waits ends with its ctx whatever the policy says. Safe
// for concurrent use: one serves all operations of a Client.
type RetryPolicy func(attempt int, elapsed time.Duration) (wait time.Duration, again bool)

// Never does not try again.
func Never() RetryPolicy {
	return func(int, time.Duration) (time.Duration, bool) { return 0, false }
}

// Times tries again n times, after wait each.
func Times(n int, wait time.Duration) RetryPolicy {
	return func(attempt int, _ time.Duration) (time.Duration, bool) { return wait, attempt <= n }
}

// Forever tries again until ctx ends.
func Forever(wait time.Duration) RetryPolicy {
	return func(int, time.Duration) (time.Duration, bool) { return wait, true }
}

// UntilElapsed tries again while no more than limit has passed since the first try.
func UntilElapsed(limit, wait time.Duration) RetryPolicy {
	return func(_ int, elapsed time.Duration) (time.Duration, bool) { return wait, elapsed+wait <= limit }
}

// Exponential tries again n times. The pauses are random, between nothing and base, 2 base, 4 base ... but no longer than limit: those who
// lost their server together do not come back together.
func Exponential(base, limit time.Duration, n int) RetryPolicy {
	return exponential(base, limit, n, rand.Int64N)
}

// exponential takes random as a function that returns a number in [0, n).
func exponential(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return func(attempt int, _ time.Duration) (time.Duration, bool) {
		if attempt > n {
			return 0, false
		}
		longest := limit
		if shift := attempt - 1; shift < 62 && base < limit>>shift {
			longest = base << shift
		}
		return time.Duration(random(int64(max(longest, 0)) + 1)), true
	}
}
