package cache

import (
	"context"
	"errors"
	"iter"
)

// ErrClosed means that the cache has ended: it was closed, or the ctx of its Start is over, or its Client is closed.
var ErrClosed = errors.New("cache: closed")

// cache is what all caches have in common.
type cache struct {
	engine *engine
}

// Start lets the cache begin; it returns at once. The cache runs until ctx ends, it is closed, or its Client is. Only the first call counts.
func (c *cache) Start(ctx context.Context) {
	g := c.engine
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil || g.closed {
		return
	}
	ctx, g.cancel = context.WithCancelCause(ctx)
	// Ends with ctx, or when the Client is closed; Close waits for it.
	g.running.Go(func() {
		defer close(g.done)
		defer g.cancel(nil) // ends the waits for watches
		g.loop(ctx)
	})
}

// Close ends the cache, and waits until nothing of it runs: so it must not be called by what Listen calls. What the cache has can still be read.
func (c *cache) Close() {
	g := c.engine
	g.mu.Lock()
	first, started := !g.closed, g.cancel != nil
	g.closed = true
	if started {
		g.cancel(ErrClosed)
	} else if first {
		g.view.end(ErrClosed)
		close(g.done)
	}
	g.mu.Unlock()
	g.running.Wait()
}

// Wait waits until the cache is complete: until all that was there when the connection was made has been read since. It returns at once if
// it is, and else an error when ctx ends, when the cache does, or when the server does not allow to read the cache's first znode, which is tried
// again all the same.
func (c *cache) Wait(ctx context.Context) error { return c.engine.view.wait(ctx) }

// Complete reports whether the cache is complete; see Wait. From the loss of the connection until all was read again it is not.
func (c *cache) Complete() bool {
	v := c.engine.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.complete
}

// Events returns what happens, for a range loop, until ctx or the cache ends. It begins with an Added for each znode that the cache has then,
// and Complete if it is. Each loop over it begins anew.
//
// The events of one znode come in order, those of different ones in the order in which they first changed since they were told. Who is slow
// loses nothing that lasts: what happened to a znode meanwhile is told as one step from what was told last, or two if it is another znode now.
func (c *cache) Events(ctx context.Context) iter.Seq[Event] {
	return c.engine.view.events(ctx, c.engine.done)
}

// Listen calls f with the Events, one after the other on one goroutine, until ctx or the cache ends. Close waits for it.
func (c *cache) Listen(ctx context.Context, f func(Event)) {
	g := c.engine
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	// Ends with ctx or the loop, or with Close if there was no Start; Close waits for it.
	g.running.Go(func() {
		for e := range c.Events(ctx) {
			f(e)
		}
	})
}
