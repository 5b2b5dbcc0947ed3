package recipes

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryPolicy decides whether to retry a request that failed because of the connection, and after
// what pause.
//
//	attempt  the number of attempts so far, at least 1
//	elapsed  the time since the first attempt began
//
// Answers of the server, such as proto.ErrNoNode, are never retried, and the end of ctx ends every
// wait whatever the policy says. All operations of a Client share the policy, which must be safe
// for concurrent use.
type RetryPolicy func(attempt int, elapsed time.Duration) (wait time.Duration, again bool)

// Times retries n times, with a pause of wait before each retry. Times(0, 0) never retries.
func Times(n int, wait time.Duration) RetryPolicy {
	return func(attempt int, _ time.Duration) (time.Duration, bool) { return wait, attempt <= n }
}

// Forever retries until ctx ends, with a pause of wait before each retry.
func Forever(wait time.Duration) RetryPolicy {
	return func(int, time.Duration) (time.Duration, bool) { return wait, true }
}

// UntilElapsed retries until limit has passed since the first attempt, waiting before each retry.
func UntilElapsed(limit, wait time.Duration) RetryPolicy {
	return func(_ int, elapsed time.Duration) (time.Duration, bool) { return wait, elapsed+wait <= limit }
}

// Exponential retries n times. The pauses are random, so that clients that lost their server
// together do not return together: the k-th is between 0 and base*2^(k-1), and at most limit.
func Exponential(base, limit time.Duration, n int) RetryPolicy {
	return exponential(base, limit, n, rand.Int64N)
}

// exponential is Exponential; random returns a number in [0, n).
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

// Repeat calls f, an operation of several requests, until f succeeds or fails for another reason
// than a lost connection or session, and returns the error of the last call. The RetryPolicy limits
// the calls. An earlier call may have been applied, also in part, so f must allow for its own
// traces: Repeat is for what can be done twice.
func (c *Client) Repeat(ctx context.Context, f func(ctx context.Context) error) error {
	k := c.core
	start := k.clock.now()
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || !lostContact(err) {
			return err
		}
		wait, again := k.cfg.retry(attempt, k.clock.now()-start)
		if !again || k.sleep(ctx, wait) != nil {
			return err
		}
	}
}

// lostContact reports whether an operation failed because of the connection or the session.
func lostContact(err error) bool {
	if errors.Is(err, ErrSessionLost) {
		return true // also as the cause of the end of a context that f made
	}
	switch classify(err) {
	case notSent, replyLost:
		return true
	case stopped:
		return false
	default:
		return errors.Is(err, ErrOutcomeUnknown)
	}
}
