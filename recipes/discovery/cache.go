package discovery

import (
	"context"
	"sync"

	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Cache is a copy of a service's instances that follows them, so that nobody needs to be asked. Safe for concurrent use.
type Cache[T any] struct {
	children *cache.Children

	mu     sync.Mutex
	parsed map[string]parsed[T] // by the znode's name: each is parsed once
}

type parsed[T any] struct {
	znode *cache.Znode // of which it was parsed
	in    Instance[T]
	err   error
}

// Cache returns a Cache of a service. It does nothing before Start.
func (d *Discovery[T]) Cache(name string) *Cache[T] {
	return &Cache[T]{children: cache.NewChildren(d.client, znodepath.Join(d.base, name)), parsed: make(map[string]parsed[T])}
}

// Start lets it begin, and does not wait. It runs until ctx ends or it is closed.
func (c *Cache[T]) Start(ctx context.Context) { c.children.Start(ctx) }

// Wait waits until it is complete; see cache.Children.
func (c *Cache[T]) Wait(ctx context.Context) error { return c.children.Wait(ctx) }

// Complete reports whether it is complete: not from the loss of the connection until all was read again.
func (c *Cache[T]) Complete() bool { return c.children.Complete() }

// Close ends it, and waits until nothing of it runs. What it has can still be read.
func (c *Cache[T]) Close() { c.children.Close() }

// Listen calls f after each change, with what has changed, on one goroutine, until ctx or the Cache ends. Close waits for it.
func (c *Cache[T]) Listen(ctx context.Context, f func(cache.Event)) { c.children.Listen(ctx, f) }

// Instances returns the instances, in the order of their znodes' names, as slice that is the caller's. What is no instance is left out.
// Their payloads may not be changed.
func (c *Cache[T]) Instances() []Instance[T] {
	znodes := c.children.All()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Instance[T], 0, len(znodes))
	now := make(map[string]parsed[T], len(znodes))
	for _, z := range znodes {
		p, there := c.parsed[z.Name()]
		if !there || p.znode != z {
			in, err := parse[T](z.Path, z.Data)
			p = parsed[T]{z, in, err}
		}
		now[z.Name()] = p
		if p.err == nil {
			all = append(all, p.in)
		}
	}
	c.parsed = now
	return all
}
