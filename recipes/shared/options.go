package shared

import (
	"time"

	"github.com/gozkd/gozkd/recipes"
)

// Option changes how a Value or Number deals with others who change it at the same time.
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

// Optimistic is when a change tries again that found that somebody else was faster. The default is Exponential(5 ms, 100 ms, 10).
func Optimistic(policy recipes.RetryPolicy) Option {
	return func(c *config) { c.optimistic = policy }
}

// PromotedToLock lets a change that was too slow as often as Optimistic allows go on with a lock at path, that of Curator's
// PromotedToLock, until it is done. Without it such a change ends with ErrContended.
func PromotedToLock(path string) Option {
	return func(c *config) { c.lock = path }
}
