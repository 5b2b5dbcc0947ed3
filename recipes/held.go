package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// Held is something that is held for as long as a znode is there: a lock, a lease, leadership. The znode is an ephemeral of one session, with a
// name that is not used twice: a protected or sequential one. Safe for concurrent use.
type Held struct {
	client  *Client
	path    string
	token   int64
	ctx     context.Context
	release context.CancelCauseFunc
}

// heldPause is between two tries to see whether the znode is still there, when the connection is lost.
const heldPause = 100 * time.Millisecond

// Hold returns what is held with the ephemeral at path, which was created in s. It fails with ErrNotHeld if there is none of s.
//
// It sets a watch on the znode. Whoever deletes the znode ends what is held, a moment later; s ends it in time.
func (c *Client) Hold(ctx context.Context, s *Session, path string) (*Held, error) {
	k := c.core
	if !k.calls.begin() { // the loop that is started below is awaited after all calls
		return nil, &Error{"hold", path, ErrClosed, false}
	}
	defer k.calls.end()
	stat, fires, err := c.ExistsW(ctx, path)
	if err != nil {
		return nil, err
	}
	if stat == nil || stat.EphemeralOwner != s.ID() || s.Context().Err() != nil {
		return nil, &Error{"hold", path, ErrNotHeld, false}
	}
	h := &Held{client: c, path: path, token: stat.Czxid}
	h.ctx, h.release = s.WithCancel()
	// Ends with Release or the session, which ends with Close at the latest; Close waits for it.
	k.loops.Go(func() { h.watch(fires) })
	return h, nil
}

// Context ends when it is not held any more or may not be: with the session, by the client's clock, before the server can give it to
// somebody else; when the znode is deleted; when it is released. Its Err looks at the clock; see Session.Context.
func (h *Held) Context() context.Context { return h.ctx }

// Token is the zxid that created the znode. Who holds it later has a greater one: a store that refuses what comes with a smaller token
// than it has seen is safe from holders that don't know yet that they hold nothing any more.
func (h *Held) Token() int64 { return h.token }

// Path is the znode's.
func (h *Held) Path() string { return h.path }

// Guard returns ops with a check in front that fails the whole multi if the znode is gone. The first result of the multi is that of the check.
func (h *Held) Guard(ops ...any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: h.path, Version: -1}}, ops...)
}

// Commit carries out all ops, as Client.Multi does, if it is still held, and else none: then the error is ErrNotHeld. The results are those
// of ops. When it ends while the answer is awaited, that is not waited for, and the error's Unknown is set.
func (h *Held) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if h.ctx.Err() != nil {
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })()
	results, err := h.client.Multi(ctx, h.Guard(ops...)...)
	if len(results) == 0 {
		return nil, err
	}
	if errors.Is(results[0].Error, zk.ErrNoNode) {
		h.release(ErrNotHeld)
		return nil, &Error{"commit", h.path, ErrNotHeld, false}
	}
	return results[1:], err
}

// Release ends Context, and then deletes the znode, in the background if need be; see Client.DeleteGuaranteed. A second call does nothing more
// than look that it is deleted.
func (h *Held) Release(ctx context.Context) error {
	h.release(ErrNotHeld)
	return h.client.DeleteGuaranteed(ctx, h.path)
}

// watch ends what is held when the znode is gone.
func (h *Held) watch(fires <-chan zk.Event) {
	for {
		select {
		case <-fires:
		case <-h.ctx.Done():
			return
		}
		stat, again, err := h.client.ExistsW(h.ctx, h.path)
		for err != nil && h.ctx.Err() == nil {
			if h.client.core.sleep(h.ctx, heldPause) != nil {
				return
			}
			stat, again, err = h.client.ExistsW(h.ctx, h.path)
		}
		if err == nil && (stat == nil || stat.Czxid != h.token) {
			h.release(ErrNotHeld)
			return
		}
		fires = again
	}
}
