package cache

import "github.com/gozkd/gozkd/recipes"

// Node keeps one znode, as Curator's NodeCache, whether or not it is there. Safe for concurrent use.
type Node struct {
	*cache
}

// NewNode returns a cache of the znode at path. It does nothing before Start.
func NewNode(c *recipes.Client, path string) *Node {
	return &Node{&cache{newEngine(c, path, shape{self: true})}}
}

// Get returns the znode, or nil if there is none, or the cache does not know it yet.
func (n *Node) Get() *Znode { return n.engine.view.get(n.engine.root.path) }
