package shared

import (
	"time"

	"github.com/gozkd/gozkd/recipes"
)

// Option changes how a Value or Number deals with concurrent changes.
type Option func(*config)

type config struct {
	optimistic recipes.RetryPolicy
	lock       string
}

func newConfig(opts []Option) config {
	cfg := config{optimistic: recipes.Exponential(5*time.Millisecond, 100*time.Millisecond, 10)}
	for _, o := range opts {
		o(&cfg)
	}
	return cfg
}

// Optimistic sets when a change is retried after another process was faster. The default is
// Exponential(5 ms, 100 ms, 10).
func Optimistic(policy recipes.RetryPolicy) Option {
	return func(c *config) { c.optimistic = policy }
}

// PromotedToLock lets a change that Optimistic no longer retries continue until done, under a lock
// at path: the lock of Curator's PromotedToLock. Without this option such a change fails with
// ErrContended.
func PromotedToLock(path string) Option {
	return func(c *config) { c.lock = path }
}
