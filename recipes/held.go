package recipes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Held is something that is held for as long as a znode is there: a lock, a lease, leadership. The znode is an ephemeral of one session, with a
// name that is not used twice: a protected or sequential one. Safe for concurrent use.
type Hold struct {
	client  *Client
	session *Session
	path    string
	token   int64
	ctx     context.Context
	cancel  context.CancelCauseFunc

	notifyMu sync.Mutex // held while onData is called
	mu       sync.Mutex // guards what follows; onData is called without
	data     []byte
	stat     *zk.Stat // nil: the data were never read
	onData   func(data []byte, stat *zk.Stat)
}

const (
	// heldQuiet is for how long something is held before its znode is watched: most is let go sooner, and costs no more requests then.
	watchDelay = 20 * time.Millisecond
	// heldPause is between two tries to see whether the znode is still there, when the connection is lost.
	watchRetryPause = 100 * time.Millisecond
)

// Hold returns what is held with the ephemeral at path, which was created in s. It asks the server nothing: the caller knows that the
// znode is there, and that with it something is held.
//
//	token   a zxid that is greater than the token of all who held it before and can't hold it together with this one: that of the
//	        znode's creation; or the Pzxid of the children among which the caller saw that it is its turn, since that changed when
//	        those before it went
//
// A moment later it sets a watch on the znode, in the background. Whoever deletes the znode ends what is held, a moment after that; s
// ends it in time.
func (c *Client) Hold(s *Session, path string, token int64) *Hold {
	h := &Hold{client: c, session: s, path: path, token: token}
	h.ctx, h.cancel = s.WithCancel()
	k := c.core
	if !k.calls.tryAdd() { // the loop that is started below is awaited after all calls
		h.cancel(ErrClosed)
		return h
	}
	defer k.calls.done()
	// Ends with Release or the session, which ends with Close at the latest; Close waits for it.
	k.loops.Go(h.watch)
	return h
}

// Context ends when it is not held any more or may not be: with the session, by the client's clock, before the server can give it to
// somebody else; when the znode is deleted; when it is released. Its Err looks at the clock; see Session.Context.
func (h *Hold) Context() context.Context { return h.ctx }

// Within returns ctx for what is only to be done while it is held: it also ends when Context does, with its cause, and like that looks at
// the clock. cancel must be called.
func (h *Hold) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	return within(ctx, h.ctx)
}

// Session is the one whose end ends it.
func (h *Hold) Session() *Session { return h.session }

// Token is a zxid. Who holds it later has a greater one: a store that refuses what comes with a smaller token than it has seen is safe from
// holders that don't know yet that they hold nothing any more. Those who may hold it together, as readers may, can have the same.
func (h *Hold) Token() int64 { return h.token }

// Path is the znode's.
func (h *Hold) Path() string { return h.path }

// Guard returns ops with a check in front that fails the whole multi if the znode is gone. The first result of the multi is that of the check.
func (h *Hold) Guard(ops ...any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: h.path, Version: -1}}, ops...)
}

// Commit carries out all ops, as Client.Multi does, if it is still held, and else none: then the error is ErrNotHeld. The results are those
// of ops. When it ends while the answer is awaited, that is not waited for, and the error's Unknown is set.
func (h *Hold) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if h.ctx.Err() != nil {
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	ctx, cancel := within(ctx, h.ctx)
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

// OnData has f called with the znode's data and Stat when somebody has changed them since it was created, now and from now on. f is called
// by one goroutine at a time, misses what was overwritten at once, and must not block or call OnData; the data are not to be changed. There is one f.
func (h *Hold) OnData(f func(data []byte, stat *zk.Stat)) {
	h.notifyMu.Lock()
	defer h.notifyMu.Unlock()
	h.mu.Lock()
	h.onData = f
	data, stat := h.data, h.stat
	h.mu.Unlock()
	if f != nil && stat != nil && stat.Version > 0 {
		f(data, stat)
	}
}

// End ends Context, for who deletes the znode together with something else, or gives it to somebody. Else it is there until Release.
func (h *Hold) End() { h.cancel(ErrNotHeld) }

// Release ends Context, and then deletes the znode, in the background if need be; see Client.DeleteGuaranteed. A second call does nothing more
// than look that it is deleted.
func (h *Hold) Release(ctx context.Context) error {
	h.cancel(ErrNotHeld)
	return h.client.DeleteGuaranteed(ctx, h.path)
}

// watch ends what is held when the znode is gone. It watches the data and not the existence: where there is no znode any more, that
// leaves no watch behind.
func (h *Hold) watch() {
	k := h.client.core
	wait := watchDelay
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
		h.notify(data, stat)
		select {
		case <-fires:
			wait = 0
		case <-h.ctx.Done():
			return
		}
	}
}

// tell notes what the znode has, and tells if it is new.
func (h *Hold) notify(data []byte, stat *zk.Stat) {
	h.notifyMu.Lock()
	defer h.notifyMu.Unlock()
	h.mu.Lock()
	changed := stat.Version > 0 && (h.stat == nil || h.stat.Version != stat.Version)
	h.data, h.stat = data, stat
	f := h.onData
	h.mu.Unlock()
	if changed && f != nil {
		f(data, stat)
	}
}
