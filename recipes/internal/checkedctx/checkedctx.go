// Package checkedctx has contexts that check whether they must end before they answer, so that they
// report an end that no timer and no goroutine has noticed yet.
package checkedctx

import "context"

// checked calls check before answering Done, Err and Value. Its inner context is from package
// context, so derived contexts need no goroutine, and context.Cause finds the cause.
type checked struct {
	context.Context
	check func()
}

// New returns ctx with a check. check must cancel ctx, or a parent of it, if ctx must end.
func New(ctx context.Context, check func()) context.Context { return &checked{ctx, check} }

func (c *checked) Done() <-chan struct{} {
	c.check()
	return c.Context.Done()
}

func (c *checked) Err() error {
	c.check()
	return c.Context.Err()
}

// Value is called by context.Cause.
func (c *checked) Value(key any) any {
	c.check()
	return c.Context.Value(key)
}

// WithCancel returns a context that ends with ctx or with cancel, and checks ctx before answering.
// cancel must be called; otherwise the context's resources are kept until ctx ends.
func WithCancel(ctx context.Context) (in context.Context, cancel context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	return New(inner, func() { _ = ctx.Err() }), cancel
}

// Within derives a context from ctx that also ends when other does, with its cause, and checks
// other before answering. cancel must be called.
func Within(ctx, other context.Context) (in context.Context, cancel context.CancelFunc) {
	inner, end := context.WithCancelCause(ctx)
	check := func() {
		if other.Err() != nil {
			end(context.Cause(other))
		}
	}
	stop := context.AfterFunc(other, check)
	return New(inner, check), func() {
		stop()
		end(nil)
	}
}
