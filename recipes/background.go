package recipes

import "context"

// Background runs f on a goroutine of its own, for what must come to its end though nobody waits for it any more. Requests that f makes with its
// ctx, or one derived from it, go through while Close waits for what is under way; then that ctx ends, and Close waits for f. When Close has
// begun, only what is in the background already, and says so with its ctx, can start more: else the error is ErrClosed, and f does not run.
func (c *Client) Background(ctx context.Context, f func(ctx context.Context)) error {
	k := c.core
	if !k.beginCall(ctx) {
		return &Error{"go on in the background", c.absolute("/"), ErrClosed, false}
	}
	defer k.calls.done()
	k.background(func(ctx context.Context) { f(context.WithValue(ctx, backgroundKey{}, k)) })
	return nil
}

// inBackground is the key under which a Background's ctx has the core whose Close waits for it.
type backgroundKey struct{}

// begin counts one more call, which must be ended. False after Close has begun, but for one from the background, which Close waits for.
func (k *core) beginCall(ctx context.Context) bool {
	if ctx.Value(backgroundKey{}) == k {
		k.calls.add()
		return true
	}
	return k.calls.tryAdd()
}
