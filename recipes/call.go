package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/proto"
)

// request describes a request to the window and, by requesthook.Func's arguments, a test's hook.
type request struct {
	op, path string // without an op, the hook does not see the request
	watch    bool
	bytes    int // of the data
}

func hooked[T any](hook requesthook.Func, r request, f func(ctx context.Context) (T, error)) func(ctx context.Context) (T, error) {
	return func(ctx context.Context) (v T, err error) {
		err = hook(r.op, r.path, r.watch, func() (err error) {
			v, err = f(ctx)
			return err
		})
		return v, err
	}
}

// do is call without a result.
func (k *core) do(ctx context.Context, r request, f func(ctx context.Context) error) error {
	_, err := call(ctx, k, r, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}

// call runs f, which sends a request, and returns its result. If ctx ends first, call returns a
// ctxError at once; Sync then waits for f. If onLate is not nil, f goes on when ctx has ended, and
// onLate gets its result. The caller must be counted in k.calls.
func call[T any](ctx context.Context, k *core, r request, f func(ctx context.Context) (T, error), onLate func(T, error)) (T, error) {
	var none T
	if limit := k.cfg.maxRequest; r.bytes > limit {
		return none, &client.TooLargeError{Size: r.bytes, Limit: limit}
	}
	send := f
	f = func(ctx context.Context) (T, error) { return within(ctx, k.window, r, send) }
	if k.hook != nil && r.op != "" {
		f = hooked(k.hook, r, f)
	}
	if ctx.Err() != nil {
		return none, newCtxError(ctx, false)
	}
	k.calls.add()
	in := ctx
	if onLate != nil {
		in = k.ctx
	}
	type result struct {
		v   T
		err error
	}
	results := make(chan result, 1)
	// Ends when the connection answers, gives up, or is closed. Close waits.
	go func() {
		defer k.calls.done()
		v, err := f(in)
		results <- result{v, err}
	}()
	select {
	case r := <-results:
		return r.v, r.err
	case <-ctx.Done():
	}
	if len(results) > 0 { // a result says more than the end of ctx
		r := <-results
		return r.v, r.err
	}
	abandoned := k.abandonedCalls.add()
	k.background(func(context.Context) {
		r := <-results
		if onLate != nil {
			onLate(r.v, r.err)
		}
		k.abandonedCalls.remove(abandoned)
	})
	return none, newCtxError(ctx, true)
}

// background runs f in a goroutine. The caller must be counted in k.calls.
func (k *core) background(f func(ctx context.Context)) {
	k.calls.add()
	// Ends when f returns, which must be soon after k.ctx ends. Close ends k.ctx and waits.
	go func() {
		defer k.calls.done()
		f(k.ctx)
	}()
}

// retry calls try until try succeeds, the server refuses, ctx ends, or the RetryPolicy stops.
// unknown tells try that an earlier attempt may have been applied. The error is an *Error.
func (c *Client) retry(ctx context.Context, op, path string, try func(ctx context.Context, unknown bool) error) (e error) {
	k, attempt := c.core, 1
	if h := k.cfg.hooks.Request; h != nil {
		if ended := h(ctx, op, path); ended != nil {
			defer func() { ended(attempt-1, e) }()
		}
	}
	if !k.beginCall(ctx) {
		return &Error{op, path, ErrClosed, false}
	}
	defer k.calls.done()
	start := k.clock.now()
	unknown := false
	for ; ; attempt++ {
		err := try(ctx, unknown)
		if err == nil {
			return nil
		}
		if u, ok := errors.AsType[*ambiguousError](err); ok {
			return &Error{op, path, u.error, true}
		}
		fail := func(err error) error { return &Error{op, path, err, unknown} }
		switch classify(err) {
		case answered:
			if errors.Is(err, proto.ErrSessionClosedRequireSASLAuth) {
				err = fmt.Errorf("the server demands an identity, such as a client certificate (WithTLS) or a SASL user (WithSASL): %w", err)
			}
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
		wait, again := k.cfg.retry(attempt, k.clock.now()-start)
		if !again {
			return fail(err)
		}
		if err := k.sleep(ctx, wait); err != nil {
			return fail(err)
		}
	}
}

// sleep waits for d, until ctx ends, or until the Client is closed.
func (k *core) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-k.closing: // checked first, in case d is 0
		return ErrClosed
	default:
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return newCtxError(ctx, false)
	case <-k.closing:
		return ErrClosed
	}
}
