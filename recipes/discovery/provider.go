package discovery

import (
	"context"
	"slices"
)

// Provider gives out instances of a service, one at a time. Safe for concurrent use.
type Provider[T any] struct {
	cache  *Cache[T]
	pick   Strategy[T]
	accept []func(Instance[T]) bool
	down   *down
}

// Provider returns a Provider of a service. It does nothing before Start. pick says which instance is next; accept may leave some out.
func (d *Discovery[T]) Provider(name string, pick Strategy[T], policy DownPolicy, accept ...func(Instance[T]) bool) *Provider[T] {
	return &Provider[T]{cache: d.Cache(name), pick: pick, accept: slices.Clone(accept), down: newDown(policy)}
}

// Start lets it begin to follow the service, and does not wait. It does so until ctx ends or it is closed.
func (p *Provider[T]) Start(ctx context.Context) { p.cache.Start(ctx) }

// Wait waits until it knows all instances; see Cache.Wait.
func (p *Provider[T]) Wait(ctx context.Context) error { return p.cache.Wait(ctx) }

// Close ends it, and waits until nothing of it runs.
func (p *Provider[T]) Close() { p.cache.Close() }

// Instance returns an instance for one use, or ErrNoInstance. It asks nobody and does not wait. The next use is to ask again.
func (p *Provider[T]) Instance() (Instance[T], error) {
	all := p.Instances()
	if len(all) == 0 {
		return Instance[T]{}, ErrNoInstance
	}
	return p.pick(all), nil
}

// Instances returns all that may be given out now: enabled, accepted, and not down.
func (p *Provider[T]) Instances() []Instance[T] {
	return slices.DeleteFunc(p.cache.Instances(), func(in Instance[T]) bool {
		return in.Disabled || p.down.is(in.identity()) || slices.ContainsFunc(p.accept, func(ok func(Instance[T]) bool) bool { return !ok(in) })
	})
}

// NoteError says that an instance could not be used. By the DownPolicy it is not given out for a while after some of these.
func (p *Provider[T]) NoteError(in Instance[T]) { p.down.note(in.identity()) }
