// Package author has the code that package recipes shares with the packages of its recipes, such as
// the methods of a recipes.Client that only recipes need.
package author

import "context"

// Client is a recipes.Client as recipes see it.
type Client interface {
	// Background runs f in its own goroutine, for work that must finish although nobody waits for
	// it. Requests that f makes with its ctx, or with a context derived from that ctx, are still
	// sent while Close waits for calls in progress. Then Close ends that ctx and waits for f.
	//
	// After Close has begun, only a caller whose ctx comes from another Background may call
	// Background. For all others the error is recipes.ErrClosed, and f does not run.
	Background(ctx context.Context, f func(ctx context.Context)) error
	// Shared returns the value that make returned on the first call with key, for all Clients of
	// this connection and namespace. Recipes share znodes and requests this way, however often a
	// recipe is constructed. The value is kept as long as the Client. key must have a type of the
	// recipe's own, as with context keys. make may be called and its result discarded.
	Shared(key any, make func() any) any
	// NewHold returns a *recipes.Hold. No request is sent: the caller must know that the znode
	// exists and that its turn has come.
	NewHold(h Hold) any
	// Logf writes a line to the Client's Logger.
	Logf(format string, args ...any)
}

// Hold describes a *recipes.Hold, which lasts as long as an ephemeral.
type Hold struct {
	Session any    // the *recipes.Session that owns the ephemeral
	Path    string // of the ephemeral
	// Token is a zxid greater than that of every earlier holder that excludes this holder: the zxid
	// of the znode's creation, or the Pzxid of the parent when the caller saw that its turn had
	// come, because the deletions of earlier holders' znodes changed that Pzxid.
	Token   int64
	Checks  []any                                      // zk.CheckVersionRequests that fail once the Hold is lost
	Release func(ctx context.Context, lost bool) error // nil deletes the ephemeral
	// Context and Cancel are of a Hold without an ephemeral and a Session.
	Context context.Context
	Cancel  context.CancelCauseFunc
}

// Package recipes sets these.
var (
	// Of returns the Client of a *recipes.Client.
	Of func(client any) Client
	// JoinHolds returns a *recipes.Hold that lasts as long as both others. The second is younger.
	JoinHolds func(a, b any) any
	// EndHold ends the Context of a *recipes.Hold and keeps its znode, for callers that delete the
	// znode together with others, or hand the znode over.
	EndHold func(hold any)
	// Session returns the *recipes.Session that owns the znode of a *recipes.Hold; nil for a lease,
	// which outlives the session.
	Session func(hold any) any
	// Refused reports whether err is a *recipes.Error that says that the server refused a request,
	// or that the request was invalid: nothing was applied, and a repetition would fail again.
	// So it does for recipes.ErrHungUp, after which something may have been applied.
	// Otherwise the connection was lost, ctx ended, or the Client was closed.
	Refused func(err error) bool
)
