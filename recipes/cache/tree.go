package cache

import (
	"math"

	"github.com/gozkd/gozkd/recipes"
)

// Tree keeps a znode and all below it, as Curator's and kazoo's TreeCache. Safe for concurrent use.
type Tree struct {
	*cache
}

// TreeOptions narrow what a Tree keeps. The zero value keeps all.
type TreeOptions struct {
	// Depth is how far below the first znode it goes; 0 is as far as there are znodes.
	Depth int
	// Enter reports whether the children of a znode are kept. nil: of all. It is called by one goroutine.
	Enter func(path string) bool
}

// NewTree returns a cache of the znode at path and those below it. It does nothing before Start.
func NewTree(c *recipes.Client, path string, o TreeOptions) *Tree {
	depth := o.Depth
	if depth <= 0 {
		depth = math.MaxInt
	}
	return &Tree{&cache{newEngine(c, path, shape{self: true, depth: depth, enter: o.Enter})}}
}

// Get returns the znode at path, or nil if the cache has none.
func (t *Tree) Get(path string) *Znode { return t.engine.view.get(path) }

// Children returns the znodes right below path, sorted by name.
func (t *Tree) Children(path string) []*Znode { return t.engine.view.below(path) }

// All returns all znodes of the tree, sorted by path.
func (t *Tree) All() []*Znode { return t.engine.view.all() }
