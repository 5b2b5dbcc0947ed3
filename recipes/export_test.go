package recipes

import "time"

// Asleep lets tests suspend the machine: f returns for how long it has been so far.
func Asleep(f func() time.Duration) Option { return func(c *config) { c.asleep = f } }

// ExponentialWith is Exponential with that source of random numbers in [0, n).
func ExponentialWith(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return exponential(base, limit, n, random)
}
