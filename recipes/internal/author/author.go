// Package author has the methods of a recipes.Client that only recipes need.
package author

import "context"

// Client is a recipes.Client as recipes see it.
type Client interface {
	// Background runs f in its own goroutine, for work that must finish although nobody waits for
	// it. Requests that f makes with its ctx, or with a context derived from that ctx, are still sent
	// while Close waits for calls in progress. Then Close ends that ctx and waits for f.
	//
	// After Close has begun, only a caller whose ctx comes from another Background may call
	// Background. For all others the error is recipes.ErrClosed, and f does not run.
	Background(ctx context.Context, f func(ctx context.Context)) error
	// Shared returns the value that make returned on the first call with key, for all Clients of this
	// connection and namespace. Recipes share znodes and requests this way, however often a recipe is
	// constructed. The value is kept as long as the Client. key must have a type of the recipe's own,
	// as with context keys. make may be called and its result discarded.
	Shared(key any, make func() any) any
	// Logf writes a line to the Client's Logger.
	Logf(format string, args ...any)
}

// Of returns the Client of a *recipes.Client. Package recipes sets it.
var Of func(client any) Client
