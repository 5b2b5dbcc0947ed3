package cache

import (
	"math"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// NewZnode returns a Tree of only the znode at path, which may be missing: Curator's NodeCache. The
// Tree does nothing before Start.
func NewZnode(c *recipes.Client, path string) *Tree {
	return &Tree{&cache{newEngine(c, path, scope{rootData: true})}}
}

// Children caches the children of a znode: Curator's PathChildrenCache. A missing znode has none;
// after its creation its children are followed. Safe for concurrent use.
type Children struct {
	*cache
}

// NewChildren returns a cache of the children of the znode at path, which does nothing before
// Start.
func NewChildren(c *recipes.Client, path string) *Children {
	return &Children{&cache{newEngine(c, path, scope{depth: 1})}}
}

// Get returns the child called name, or nil if the cache has none.
func (c *Children) Get(name string) *Znode {
	return c.engine.view.get(znodepath.Join(c.engine.root.path, name))
}

// All returns the children, sorted by name.
func (c *Children) All() []*Znode { return c.engine.view.all() }

// Tree caches a znode and its descendants: Curator's and kazoo's TreeCache. Safe for concurrent
// use.
type Tree struct {
	*cache
}

// TreeOptions restrict what a Tree caches. The zero value caches everything.
type TreeOptions struct {
	// Depth is the number of levels below the root; 0 means all.
	Depth int
	// Enter reports whether the children of a znode are cached. nil means always. Enter is called
	// from a single goroutine.
	Enter func(path string) bool
}

// NewTree returns a cache of the znode at path and its descendants, which does nothing before
// Start. With zero options the Tree has a single recursive watch, if the server knows these.
func NewTree(c *recipes.Client, path string, o TreeOptions) *Tree {
	depth := o.Depth
	if depth <= 0 {
		depth = math.MaxInt
	}
	return &Tree{&cache{newEngine(c, path, scope{
		rootData: true, depth: depth, enter: o.Enter, recursive: o.Depth <= 0 && o.Enter == nil,
	})}}
}

// Get returns the znode at path, or nil if the cache has none.
func (t *Tree) Get(path string) *Znode { return t.engine.view.get(path) }

// Children returns the children of the znode at path, sorted by name.
func (t *Tree) Children(path string) []*Znode { return t.engine.view.children(path) }

// All returns all znodes of the tree, sorted by path.
func (t *Tree) All() []*Znode { return t.engine.view.all() }
