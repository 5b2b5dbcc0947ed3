// Package requesthook lets tests intercept the requests of a recipes.Client.
package requesthook

import "context"

// Func is called for each request, except the probes that keep track of the session. send sends the
// request. An error other than send's acts as the answer.
//
//	op    "create", "delete", "set", "get", "exists", "children", "multi" or "sync"
//	path  on the server: without the sequence number, with the GUID of a protected znode, and of the
//	      first operation of a multi
type Func func(op, path string, watch bool, send func() error) error

type key struct{}

// With returns a context that gives f to the Client that Connect or Wrap makes with it.
func With(ctx context.Context, f Func) context.Context { return context.WithValue(ctx, key{}, f) }

// From returns the Func of With, or nil.
func From(ctx context.Context) Func {
	f, _ := ctx.Value(key{}).(Func)
	return f
}
