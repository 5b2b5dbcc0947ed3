package recipes

import (
	"context"
	"log/slog"
)

// The methods and functions of this file are for authors of recipes: all recipes of the packages
// below are written with what this package exports.

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

// Logger returns the logger of the option Logger or Slog.
func (c *Client) Logger() *slog.Logger { return c.core.cfg.log }

// Shared returns the value that create returned on the first call with key, for all Clients of this
// connection and namespace. Recipes share znodes and requests this way, however often a recipe is
// constructed. The value is kept as long as the Client. As with context keys, the type of key must
// be the recipe's own. create may be called and its result discarded.
func Shared[K comparable, V any](c *Client, key K, create func() V) V {
	k := sharedKey[K, V]{c.root, key}
	v, there := c.core.shared.Load(k)
	if !there {
		v, _ = c.core.shared.LoadOrStore(k, create())
	}
	return v.(V) // part of the key
}

type sharedKey[K comparable, V any] struct {
	root string
	key  K
}
