package recipes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes/internal/author"
)

// request describes a request to the window and to a test's hook, with the arguments of
// requesthook.Func.
type request struct {
	op, path string // without an op, the hook does not see the request
	watch    bool
	bytes    int // of the data
}

// hooked returns f with a call of hook.
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
	if ctx.Done() == nil {
		defer k.calls.done()
		return f(ctx)
	}
	in := ctx
	if onLate != nil {
		in = k.ctx
	}
	type result struct {
		v   T
		err error
	}
	results := make(chan result, 1)
	// Ends when the connection answers or gives up, at the latest when the connection is closed.
	// Close waits.
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
		var u *ambiguousError
		if errors.As(err, &u) {
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

// forRecipes implements author.Client.
type forRecipes struct{ *Client }

func init() {
	author.Of = func(client any) author.Client { return forRecipes{client.(*Client)} }
	author.JoinHolds = func(a, b any) any { return joinHolds(a.(*Hold), b.(*Hold)) }
	author.EndHold = func(hold any) { hold.(*Hold).cancel(ErrNotHeld) }
	author.Session = func(hold any) any { return hold.(*Hold).session }
	author.Refused = func(err error) bool {
		var e *Error
		return errors.As(err, &e) && (!e.Unknown && classify(e.Err) == answered || errors.Is(err, ErrHungUp))
	}
}

func (c forRecipes) NewHold(h author.Hold) any { return c.newHold(h) }

func (c forRecipes) Background(ctx context.Context, f func(ctx context.Context)) error {
	k := c.core
	if !k.beginCall(ctx) {
		return &Error{"go on in the background", c.absolute("/"), ErrClosed, false}
	}
	defer k.calls.done()
	k.background(func(ctx context.Context) { f(context.WithValue(ctx, backgroundKey{}, k)) })
	return nil
}

func (c forRecipes) Logf(format string, args ...any) {
	c.core.cfg.log.Warn(fmt.Sprintf(format, args...))
}

// backgroundKey is the context key under which the ctx of Background holds its core.
type backgroundKey struct{}

// beginCall counts a call, at whose end k.calls.done must be called. The result is false after
// Close has begun, except for a caller in the background, for which Close waits.
func (k *core) beginCall(ctx context.Context) bool {
	if ctx.Value(backgroundKey{}) == k {
		k.calls.add()
		return true
	}
	return k.calls.tryAdd()
}

func (c forRecipes) Shared(key any, make func() any) any {
	k := sharedKey{c.root, key}
	if v, ok := c.core.shared.Load(k); ok {
		return v
	}
	v, _ := c.core.shared.LoadOrStore(k, make())
	return v
}

type sharedKey struct {
	root string
	key  any
}

// RetryPolicy decides whether to retry a request that failed because of the connection, and after
// what pause.
//
//	attempt  the number of attempts so far, at least 1
//	elapsed  the time since the first attempt began
//
// Answers of the server, such as zk.ErrNoNode, are never retried, and the end of ctx ends every
// wait whatever the policy says. All operations of a Client share the policy, which must be safe
// for concurrent use.
type RetryPolicy func(attempt int, elapsed time.Duration) (wait time.Duration, again bool)

// Times retries n times, with a pause of wait before each retry. Times(0, 0) never retries.
func Times(n int, wait time.Duration) RetryPolicy {
	return func(attempt int, _ time.Duration) (time.Duration, bool) { return wait, attempt <= n }
}

// Forever retries until ctx ends, with a pause of wait before each retry.
func Forever(wait time.Duration) RetryPolicy {
	return func(int, time.Duration) (time.Duration, bool) { return wait, true }
}

// UntilElapsed retries until limit has passed since the first attempt, with a pause of wait before
// each retry.
func UntilElapsed(limit, wait time.Duration) RetryPolicy {
	return func(_ int, elapsed time.Duration) (time.Duration, bool) { return wait, elapsed+wait <= limit }
}

// Exponential retries n times. The pauses are random, so that clients that lost their server
// together do not return together: the k-th is between 0 and base*2^(k-1), and at most limit.
func Exponential(base, limit time.Duration, n int) RetryPolicy {
	return exponential(base, limit, n, rand.Int64N)
}

// exponential is Exponential; random returns a number in [0, n).
func exponential(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return func(attempt int, _ time.Duration) (time.Duration, bool) {
		if attempt > n {
			return 0, false
		}
		longest := limit
		if shift := attempt - 1; shift < 62 && base < limit>>shift {
			longest = base << shift
		}
		return time.Duration(random(int64(max(longest, 0)) + 1)), true
	}
}

// Repeat calls f, an operation of several requests, until f succeeds or fails for another reason
// than a lost connection or session, and returns the error of the last call. The RetryPolicy limits
// the calls. An earlier call may have been applied, also in part, so f must allow for its own
// traces: Repeat is for what can be done twice.
func (c *Client) Repeat(ctx context.Context, f func(ctx context.Context) error) error {
	k := c.core
	start := k.clock.now()
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || !lostContact(err) {
			return err
		}
		wait, again := k.cfg.retry(attempt, k.clock.now()-start)
		if !again || k.sleep(ctx, wait) != nil {
			return err
		}
	}
}

// lostContact reports whether an operation failed because of the connection or the session.
func lostContact(err error) bool {
	if errors.Is(err, ErrSessionLost) {
		return true // also as the cause of the end of a context that f made
	}
	switch classify(err) {
	case notSent, replyLost:
		return true
	case stopped:
		return false
	default:
		return errors.Is(err, ErrOutcomeUnknown)
	}
}
