package recipes

import "context"

// Background runs f in its own goroutine, for work that must finish although nobody waits for it.
// Requests that f makes with its ctx, or with a context derived from that ctx, are still sent while
// Close waits for calls in progress. Then Close ends that ctx and waits for f.
//
// After Close has begun, only a caller whose ctx comes from another Background may call Background.
// For all others the error is ErrClosed, and f does not run.
func (c *Client) Background(ctx context.Context, f func(ctx context.Context)) error {
	k := c.core
	if !k.beginCall(ctx) {
		return &Error{"go on in the background", c.absolute("/"), ErrClosed, false}
	}
	defer k.calls.done()
	k.background(func(ctx context.Context) { f(context.WithValue(ctx, backgroundKey{}, k)) })
	return nil
}

// Logf writes a line to the Client's Logger.
func (c *Client) Logf(format string, args ...any) { c.core.cfg.logger.Printf(format, args...) }

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
