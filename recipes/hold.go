package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
)

// Hold is the possession of something: a lock, leadership, an item. It lasts as long as its znode
// exists, which is an ephemeral of one session. The Hold of a lease lasts until a time of day, that
// of several locks as long as all of them. Safe for concurrent use.
type Hold struct {
	client    *Client
	session   *Session
	path      string
	token     int64
	checks    []client.Op // fail once the Hold is lost
	ownChecks int         // the first checks, whose failure also proves that the Hold is lost
	ctx       context.Context
	cancel    context.CancelCauseFunc
	// release deletes the znode, after the Hold's ctx has ended. lost: the Hold had ended before
	// Release was called, so the znode may be another holder's.
	release func(ctx context.Context, lost bool) error
	revoked context.Context
	revoke  context.CancelFunc
}

const (
	// watchDelay is how long a Hold exists before its znode is watched. Most are released sooner
	// and so cost no request for the watch.
	watchDelay = 20 * time.Millisecond
	// watchRetryPause is the pause before the watch is tried again after the connection was lost.
	watchRetryPause = 100 * time.Millisecond
)

// HoldSpec describes a Hold, which lasts as long as an ephemeral.
type HoldSpec struct {
	Session *Session // that owns the ephemeral
	Path    string   // of the ephemeral
	// Token is a zxid greater than that of every earlier holder that excludes this holder: the zxid
	// of the znode's creation, or the Pzxid of the parent when the caller saw that its turn had
	// come, because the deletions of earlier holders' znodes changed that Pzxid.
	Token   int64
	Checks  []client.Op                                // client.CheckOps that fail once the Hold is lost
	Release func(ctx context.Context, lost bool) error // nil deletes the ephemeral
	// Context and Cancel are of a Hold without an ephemeral and a Session.
	Context context.Context
	Cancel  context.CancelCauseFunc
}

// NewHold returns a Hold. No request is sent: the caller must know that the znode exists and that
// its turn has come. If somebody deletes the znode, a watch ends the Hold a moment later. If the
// session ends, the Hold ends before the server can serve another client.
func (c *Client) NewHold(o HoldSpec) *Hold {
	h := &Hold{client: c, path: o.Path, token: o.Token, checks: o.Checks, ownChecks: 1, ctx: o.Context, cancel: o.Cancel, release: o.Release}
	h.revoked, h.revoke = context.WithCancel(context.Background())
	if h.release == nil {
		h.release = func(ctx context.Context, _ bool) error {
			if h.session.ctx.Err() != nil {
				return nil // the server deletes the znode with the session
			}
			return c.DeleteGuaranteed(ctx, o.Path)
		}
	}
	if h.ctx != nil {
		return h
	}
	h.session = o.Session
	h.checks = append([]client.Op{client.CheckOp(o.Path, -1)}, o.Checks...)
	h.ctx, h.cancel = checkedctx.WithCancel(h.session.ctx)
	k := c.core
	if !k.calls.tryAdd() { // tryAdd: Close waits for k.loops only after all calls
		h.cancel(ErrClosed)
		return h
	}
	defer k.calls.done()
	if k.cfg.endSuspended {
		k.mu.Lock()
		connection := k.connection
		k.mu.Unlock()
		stop := context.AfterFunc(connection, func() { h.cancel(errSuspended) })
		context.AfterFunc(h.ctx, func() { stop() })
	}
	// Ends with Release or with the session, at the latest with Close. Close waits.
	k.loops.Go(h.watch)
	return h
}

// JoinHolds returns a Hold that lasts as long as a and the younger b. Release releases both.
func JoinHolds(a, b *Hold) *Hold {
	h := &Hold{client: a.client, session: b.session, path: a.path, token: b.token, checks: slices.Concat(a.checks, b.checks)}
	h.ownChecks = len(h.checks)
	h.revoked, h.revoke = context.WithCancel(context.Background())
	context.AfterFunc(a.revoked, h.revoke)
	context.AfterFunc(b.revoked, h.revoke)
	base, end := context.WithCancelCause(context.Background())
	first, stopFirst := checkedctx.Within(base, a.ctx)
	both, stop := checkedctx.Within(first, b.ctx)
	h.ctx, h.cancel = both, func(cause error) {
		end(cause)
		stop()
		stopFirst()
	}
	h.release = func(ctx context.Context, _ bool) error { return errors.Join(b.Release(ctx), a.Release(ctx)) }
	return h
}

// Context ends when the Hold ends: with the session, by the client's clock and before the server
// can serve another client; when the znode is deleted; and when the Hold is released. Its Err looks
// at the clock; see Session.Context.
func (h *Hold) Context() context.Context { return h.ctx }

// Within returns a context for work that must only be done while the Hold lasts. The context has
// the values of ctx, ends when ctx or Context ends, with the cause of that end, and looks at the
// clock as Context does. cancel must be called.
func (h *Hold) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	return checkedctx.Within(ctx, h.ctx)
}

// Token is a zxid that rises from holder to holder. A store that refuses writes with a token
// smaller than the greatest so far is safe from former holders that do not know yet that they lost
// the Hold. Holders that do not exclude each other, such as readers, may have the same token.
func (h *Hold) Token() int64 { return h.token }

// Path is the path of the znode.
func (h *Hold) Path() string { return h.path }

// Session returns the session that owns the znode; nil for a lease, which outlives the session.
func (h *Hold) Session() *Session { return h.session }

// Guard returns ops preceded by checks that make the whole multi fail if the Hold is lost: one; two
// for an item; one for each of several locks. The multi's first results are those of the checks.
func (h *Hold) Guard(ops ...client.Op) []client.Op { return slices.Concat(h.checks, ops) }

// Commit applies all ops, as Client.Multi does, if the Hold still lasts. Otherwise no op is
// applied, and the error is ErrNotHeld. The results are those of ops. If the Hold ends while Commit
// waits for the answer, Commit returns at once with the error's Unknown set.
func (h *Hold) Commit(ctx context.Context, ops ...client.Op) ([]client.Result, error) {
	if h.ctx.Err() != nil {
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	ctx, cancel := checkedctx.Within(ctx, h.ctx)
	defer cancel()
	results, err := h.client.Multi(ctx, h.Guard(ops...)...)
	if len(results) == 0 {
		return nil, err
	}
	for i := range h.checks {
		if e := results[i].Err; errors.Is(e, proto.ErrNoNode) || errors.Is(e, proto.ErrBadVersion) {
			if i < h.ownChecks {
				h.cancel(ErrNotHeld)
			}
			return nil, &Error{"commit", h.path, ErrNotHeld, false}
		}
	}
	return results[len(h.checks):], err
}

// Revoked returns a channel that is closed when somebody asks the holder to release the Hold, with
// lock.Revoke or with Curator's Revoker. Nothing else happens then. A request is noticed no earlier
// than 20 ms after the Hold began.
func (h *Hold) Revoked() <-chan struct{} { return h.revoked.Done() }

// revokeMessage is the data that Curator's Revoker writes to a contender's znode.
const revokeMessage = "__REVOKE__"

// errSuspended is the cause of an end by EndHoldsWhenSuspended, after which the znode still exists.
var errSuspended = fmt.Errorf("the connection was lost: %w", ErrNotHeld)

// Release ends Context and deletes the znode, in the background if ctx ends first, with
// ErrOutcomeUnknown; see Client.DeleteGuaranteed. After the session Release sends nothing. Release
// may be called again.
func (h *Hold) Release(ctx context.Context) error {
	lost := h.ctx.Err() != nil && !errors.Is(context.Cause(h.ctx), errSuspended)
	h.cancel(ErrNotHeld)
	return h.release(ctx, lost)
}

// End ends Context and keeps the znode, for callers that delete the znode together with others, or
// hand the znode over.
func (h *Hold) End() { h.cancel(ErrNotHeld) }

// watch ends the Hold when the znode is gone. The watch is on the data and not on the existence,
// because an exists watch on a missing znode would stay armed.
func (h *Hold) watch() {
	k := h.client.core
	wait := watchDelay
	for k.sleep(h.ctx, wait) == nil {
		data, stat, fires, err := h.client.GetW(h.ctx, h.path)
		switch {
		case errors.Is(err, proto.ErrNoNode), err == nil && int64(stat.EphemeralOwner) != h.session.ID():
			h.cancel(ErrNotHeld)
			return
		case err != nil:
			if wait = watchRetryPause; errors.Is(err, proto.ErrNoAuth) { // its ACL will rarely change
				wait = h.client.Timeout() / 3
			}
			continue
		}
		if stat.Version > 0 && string(data) == revokeMessage {
			h.revoke()
		}
		select {
		case <-fires:
			wait = 0
		case <-h.ctx.Done():
			return
		}
	}
}

// Contender describes a participant of a recipe, as read from its znode.
type Contender struct {
	Path    string
	Data    []byte    // what the contender stored to describe itself
	Session int64     // 0 if the znode is not ephemeral
	Since   time.Time // creation time by the leader's clock
	Zxid    int64     // of the creation
}

// Contention lists the contenders that hold something and those that wait for it, in the order in
// which they will be served.
type Contention struct{ Holders, Waiters []Contender }
