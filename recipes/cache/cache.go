package cache

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/gozkd/gozkd/recipes"
)

// Start starts the cache and returns at once. The cache runs until ctx ends, or until Close of the
// cache or its Client. A second call does nothing; after Close the error is recipes.ErrClosed.
func (g *engine) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return fmt.Errorf("cache: start: %w", recipes.ErrClosed)
	case g.cancel != nil:
		return nil
	}
	ctx, g.cancel = context.WithCancelCause(ctx)
	// Ends with ctx, or when the Client is closed. Close waits.
	g.running.Go(func() {
		defer close(g.done)
		defer g.cancel(nil) // ends the goroutines that wait for watches
		g.loop(ctx)
	})
	return nil
}

// Close ends the cache and waits for its goroutines, so a function given to Listen must not call
// Close. The content can still be read. The error is nil.
func (g *engine) Close() error {
	g.mu.Lock()
	first, started := !g.closed, g.cancel != nil
	g.closed = true
	if started {
		g.cancel(recipes.ErrClosed)
	} else if first {
		g.view.end(recipes.ErrClosed)
		close(g.done)
	}
	g.mu.Unlock()
	g.running.Wait()
	return nil
}

// Wait waits until the cache is complete: until everything that existed when the connection was
// made has been read since. Wait fails when ctx or the cache ends, and when the server does not
// allow to read the root znode, although that is retried. Before Start the error is
// recipes.ErrNotStarted.
func (g *engine) Wait(ctx context.Context) error {
	g.mu.Lock()
	idle := g.cancel == nil && !g.closed && ctx.Err() == nil
	g.mu.Unlock()
	if idle {
		return fmt.Errorf("cache: wait: %w", recipes.ErrNotStarted)
	}
	return g.view.wait(ctx)
}

// Complete reports whether the cache is complete; see Wait. From the loss of the connection until
// everything was read again, the answer is false.
func (g *engine) Complete() bool {
	v := g.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.complete
}

// Events returns the changes, for a range loop, until ctx or the cache ends, beginning with an
// Added for each present znode, and Complete if the cache is complete. Each loop begins anew.
// Before Start, a loop and Listen wait for Start, as a listener does that is added before.
//
// Events of the same znode come in order; events of different znodes in the order of their first
// change that was not reported yet. A slow reader misses only intermediate states: several changes
// of a znode are reported as a single change from the last reported state, or as Removed and Added
// if the znode was created again.
func (g *engine) Events(ctx context.Context) iter.Seq[Event] {
	return g.view.events(ctx, g.done)
}

// Listen calls f with the Events, in a single goroutine, until ctx or the cache ends. Close waits
// for the goroutine.
func (g *engine) Listen(ctx context.Context, f func(Event)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	// Ends with ctx or with the cache. Close waits.
	g.running.Go(func() {
		for e := range g.Events(ctx) {
			f(e)
		}
	})
}

// NewZnode returns a Tree of only the znode at path, which may be missing: Curator's NodeCache. The
// Tree does nothing before Start.
func NewZnode(c *recipes.Client, path string) *Tree {
	return &Tree{newEngine(c, path, scope{rootData: true})}
}

// NewChildren returns a Tree of the children of the znode at path, without that znode: Curator's
// PathChildrenCache. A missing znode has no children; after its creation they are followed. The
// Tree does nothing before Start.
func NewChildren(c *recipes.Client, path string) *Tree {
	return &Tree{newEngine(c, path, scope{depth: 1})}
}

// Tree caches a znode and its descendants, as Curator's and kazoo's TreeCache do, or a part of
// these. Safe for concurrent use.
type Tree struct {
	*engine
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
//
// The server does not report to a recursive watch that a znode was deleted which the Client may not
// read any longer. Such a znode stays in the Tree until other children of its parent come or go, or
// the Client reconnects. An Enter that is always true avoids that, with two watches per znode.
func NewTree(c *recipes.Client, path string, o TreeOptions) *Tree {
	depth := o.Depth
	if depth <= 0 {
		depth = math.MaxInt
	}
	return &Tree{newEngine(c, path, scope{
		rootData: true, depth: depth, enter: o.Enter, recursive: o.Depth <= 0 && o.Enter == nil,
	})}
}

// Get returns the znode at path, or nil if the cache has none.
func (t *Tree) Get(path string) *Znode {
	t.view.mu.RLock()
	defer t.view.mu.RUnlock()
	return t.view.at(path)
}

// Children returns the children of the znode at path, sorted by name.
func (t *Tree) Children(path string) []*Znode {
	t.view.mu.RLock()
	defer t.view.mu.RUnlock()
	children := t.view.znodes[path]
	return sorted(slices.AppendSeq(make([]*Znode, 0, len(children)), maps.Values(children)))
}

// All returns all znodes of the cache, sorted by path.
func (t *Tree) All() []*Znode {
	t.view.mu.RLock()
	defer t.view.mu.RUnlock()
	return t.view.all()
}
