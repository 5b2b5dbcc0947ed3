package cache

import "github.com/gozkd/gozkd/recipes"

// Children keeps the children of a znode and their data, as Curator's PathChildrenCache. If the znode is not there, it has none; when it
// is created, they are followed. Safe for concurrent use.
type Children struct {
	*cache
}

// NewChildren returns a cache of the children of the znode at path. It does nothing before Start.
func NewChildren(c *recipes.Client, path string) *Children {
	return &Children{&cache{newEngine(c, path, shape{depth: 1})}}
}

// Get returns the child of that name, or nil if the cache has none.
func (c *Children) Get(name string) *Znode { return c.engine.view.get(join(c.engine.root.path, name)) }

// All returns the children, sorted by name.
func (c *Children) All() []*Znode { return c.engine.view.all() }
