// Package coalesce lets callers that want the same at the same time make one request.
package coalesce

import (
	"context"
	"sync"
)

// Calls lets callers with the same key share the runs of a function, such as a request. Callers
// that ask while the function runs share its next run, which begins after they asked. So a thousand
// contenders that join at once read their directory twice, not a thousand times. The zero value is
// ready to use. Safe for concurrent use.
type Calls[V any] struct {
	mu   sync.Mutex
	next map[string]*Call[V] // by key, while its goroutine runs; nil: no caller waits for a next run
}

// Call is a run of a function. Value and Err are set when Done is closed.
type Call[V any] struct {
	Done  chan struct{}
	Value V // must not be modified: all callers of the run share it
	Err   error
}

// Ask returns a run that begins after Ask was called. start starts a goroutine, unless it fails.
// f must be the same for all callers with key.
func (c *Calls[V]) Ask(
	key string, start func(run func(ctx context.Context)) error, f func(ctx context.Context) (V, error),
) (*Call[V], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(map[string]*Call[V])
	}
	if _, running := c.next[key]; !running {
		if err := start(func(ctx context.Context) { c.run(ctx, key, f) }); err != nil {
			return nil, err
		}
	}
	if c.next[key] == nil {
		c.next[key] = &Call[V]{Done: make(chan struct{})}
	}
	return c.next[key], nil
}

// run calls f until no caller waits for another run.
func (c *Calls[V]) run(ctx context.Context, key string, f func(ctx context.Context) (V, error)) {
	for {
		c.mu.Lock()
		now := c.next[key]
		if c.next[key] = nil; now == nil {
			delete(c.next, key)
		}
		c.mu.Unlock()
		if now == nil {
			return
		}
		now.Value, now.Err = f(ctx)
		close(now.Done)
	}
}
