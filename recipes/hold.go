package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
)

// Hold is the possession of something (a lock, a lease, leadership) that lasts as long as its znode
// exists. The znode is an ephemeral of one session, with a name that is never reused: protected or
// sequential. Safe for concurrent use.
type Hold struct {
	client  *Client
	session *Session
	path    string
	token   int64
	ctx     context.Context
	cancel  context.CancelCauseFunc
	revoked chan struct{}
	keep    func() bool // nil, or ends what EndHoldsWhenSuspended asks for
}

const (
	// watchDelay is how long a Hold exists before its znode is watched. Most are released sooner
	// and so cost no request for the watch.
	watchDelay = 20 * time.Millisecond
	// watchRetryPause is the pause before the watch is tried again after the connection was lost.
	watchRetryPause = 100 * time.Millisecond
)

// Hold returns a Hold that lasts as long as the ephemeral at path, which was created in s. No
// request is sent: the caller must know that the znode exists and that its turn has come.
//
//	token   a zxid greater than that of every earlier holder that excludes this holder: the zxid of
//	        the znode's creation, or the Pzxid of the parent when the caller saw that its turn had
//	        come, because the deletions of earlier holders' znodes changed that Pzxid
//
// Shortly afterwards, a goroutine sets a watch on the znode. If somebody deletes the znode, the
// Hold ends a moment later. If s ends, the Hold ends before the server can serve another client.
func (c *Client) Hold(s *Session, path string, token int64) *Hold {
	h := &Hold{client: c, session: s, path: path, token: token, revoked: make(chan struct{})}
	h.ctx, h.cancel = checkedctx.WithCancel(s.ctx)
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
		h.keep = context.AfterFunc(connection, h.End)
	}
	// Ends with Release or with the session, at the latest with Close. Close waits.
	k.loops.Go(h.watch)
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

// Session returns the session that owns the znode.
func (h *Hold) Session() *Session { return h.session }

// Token is a zxid that rises from holder to holder. A store that refuses writes with a token
// smaller than the greatest so far is safe from former holders that do not know yet that they lost
// the Hold. Holders that do not exclude each other, such as readers, may have the same token.
func (h *Hold) Token() int64 { return h.token }

// Path is the path of the znode.
func (h *Hold) Path() string { return h.path }

// Guard returns ops preceded by a check that makes the whole multi fail if the znode is gone. The
// multi's first result is that of the check.
func (h *Hold) Guard(ops ...any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: h.path, Version: -1}}, ops...)
}

// Commit applies all ops, as Client.Multi does, if the Hold still lasts. Otherwise no op is
// applied, and the error is ErrNotHeld. The results are those of ops. If the Hold ends while Commit
// waits for the answer, Commit returns at once with the error's Unknown set.
func (h *Hold) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if h.ctx.Err() != nil {
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	ctx, cancel := checkedctx.Within(ctx, h.ctx)
	defer cancel()
	results, err := h.client.Multi(ctx, h.Guard(ops...)...)
	if len(results) == 0 {
		return nil, err
	}
	if errors.Is(results[0].Error, zk.ErrNoNode) {
		h.cancel(ErrNotHeld)
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	return results[1:], err
}

// Revoked returns a channel that is closed when somebody asks the holder to release the Hold, with
// lock.Revoke or with Curator's Revoker. Nothing else happens then. A request is noticed no earlier
// than 20 ms after the Hold began.
func (h *Hold) Revoked() <-chan struct{} { return h.revoked }

// revokeMessage is the data that Curator's Revoker writes to a contender's znode.
const revokeMessage = "__REVOKE__"

// End ends Context and keeps the znode, for callers that delete the znode together with others, or
// hand the znode over.
func (h *Hold) End() { h.cancel(ErrNotHeld) }

// Release ends Context and deletes the znode, in the background if ctx ends first; see
// Client.DeleteGuaranteed. Calling Release again only makes sure that the znode is gone.
func (h *Hold) Release(ctx context.Context) error {
	h.cancel(ErrNotHeld)
	return h.client.DeleteGuaranteed(ctx, h.path)
}

// watch ends the Hold when the znode is gone. The watch is on the data and not on the existence,
// because an exists watch on a missing znode would stay armed.
func (h *Hold) watch() {
	if h.keep != nil {
		defer h.keep()
	}
	k := h.client.core
	wait, revoked := watchDelay, false
	for k.sleep(h.ctx, wait) == nil {
		data, stat, fires, err := h.client.GetW(h.ctx, h.path)
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && stat.EphemeralOwner != h.session.ID():
			h.cancel(ErrNotHeld)
			return
		case err != nil:
			wait = watchRetryPause
			continue
		}
		if !revoked && stat.Version > 0 && string(data) == revokeMessage {
			revoked = true
			close(h.revoked)
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
