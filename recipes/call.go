package recipes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// call runs f, which asks the connection, and returns what it returns; or, when ctx ends before, a ctxError. Then f is among those that Sync waits
// for, and late gets its result when there is one. late may be nil. The caller is counted in k.calls. When call returns what f did, the session
// that is the present one is over if another was there when f was answered.
func call[T any](ctx context.Context, k *core, f func() (T, error), late func(T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, newCtxError(ctx, false)
	}
	k.calls.add()
	if ctx.Done() == nil {
		defer k.calls.done()
		defer k.endReplacedSession()
		return f()
	}
	type result struct {
		v   T
		err error
	}
	var (
		settled atomic.Bool   // by who comes first: the result, or the end of ctx
		left    chan struct{} // written before ctx's end settles it, and read after
		results = make(chan result, 1)
	)
	// Ends when the connection answers or gives up, at the latest when it is closed; Close waits for it.
	go func() {
		defer k.calls.done()
		v, err := f()
		k.endReplacedSession()
		if settled.CompareAndSwap(false, true) {
			results <- result{v, err}
			return
		}
		if late != nil {
			late(v, err)
		}
		k.abandonedCalls.remove(left)
	}()
	select {
	case r := <-results:
		return r.v, r.err
	case <-ctx.Done():
	}
	left = k.abandonedCalls.add()
	if settled.CompareAndSwap(false, true) {
		return none, newCtxError(ctx, true)
	}
	k.abandonedCalls.remove(left)
	r := <-results
	return r.v, r.err
}

// background runs f until it is done or the Client is closed, which waits for it. The caller is counted in k.calls.
func (k *core) background(f func(ctx context.Context)) {
	k.calls.add()
	// Ends with background's ctx at the latest, which Close ends; Close waits for it.
	go func() {
		defer k.calls.done()
		f(k.ctx)
	}()
}

// retry calls try until it succeeds, the server has answered, ctx has ended, or the policy has had enough. try gets whether an earlier
// try may have been applied. The error is an *Error.
func (c *Client) retry(ctx context.Context, op, path string, try func(ctx context.Context, before bool) error) error {
	k := c.core
	if !k.beginCall(ctx) {
		return &Error{op, path, ErrClosed, false}
	}
	defer k.calls.done()
	begun := k.clock.now()
	unknown := false
	for attempt := 1; ; attempt++ {
		err := try(ctx, unknown)
		if err == nil {
			return nil
		}
		var u *ambiguousError
		if errors.As(err, &u) {
			return &Error{op, path, u.error, true}
		}
		fail := func(err error) error { return &Error{op, path, err, unknown} }
		switch classify(err) {
		case answered:
			return &Error{op, path, err, false}
		case stopped:
			return fail(err)
		case notAwaited:
			unknown = true
			return fail(err)
		case replyLost:
			unknown = true
		case notSent:
		}
		wait, again := k.cfg.retry(attempt, k.clock.now()-begun)
		if !again {
			return fail(err)
		}
		if err := k.sleep(ctx, wait); err != nil {
			return fail(err)
		}
	}
}

// sleep waits for d, or until ctx ends or the Client is closed.
func (k *core) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-k.closing: // also where d is 0
		return ErrClosed
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return newCtxError(ctx, false)
	case <-k.closing:
		return ErrClosed
	}
}
