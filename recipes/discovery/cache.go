package discovery

import (
	"sync"

	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Cache is a cache of a service's instances. Its methods are those of cache.Tree, and
// Instances. Safe for concurrent use.
type Cache[T any] struct {
	*cache.Tree

	mu     sync.Mutex
	parsed map[string]parsed[T] // by the znode's path: each is parsed once
}

type parsed[T any] struct {
	znode    *cache.Znode // the source
	instance Instance[T]
	err      error
}

// Cache returns a Cache of a service, which does nothing before Start.
func (d *Discovery[T]) Cache(name string) *Cache[T] {
	return &Cache[T]{Tree: cache.NewChildren(d.client, znodepath.Join(d.base, name)), parsed: make(map[string]parsed[T])}
}

// Instances returns the instances, in the order of their znodes' names, in a slice that the caller
// owns. Znodes that are not instances are left out. Payloads must not be modified.
func (c *Cache[T]) Instances() []Instance[T] {
	znodes := c.All()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Instance[T], 0, len(znodes))
	now := make(map[string]parsed[T], len(znodes))
	for _, z := range znodes {
		p, ok := c.parsed[z.Path]
		if !ok || p.znode != z {
			in, err := parse[T](z.Path, z.Data)
			p = parsed[T]{z, in, err}
		}
		now[z.Path] = p
		if p.err == nil {
			all = append(all, p.instance)
		}
	}
	c.parsed = now
	return all
}
