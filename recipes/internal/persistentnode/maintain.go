package persistentnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
)

// run maintains the znode until ctx ends, and then deletes it.
func (n *Znode) run(ctx context.Context) {
	k := &maintainer{Znode: n, takeOverPending: n.takeOver}
	defer close(n.done)
	for pause := time.Duration(0); ctx.Err() == nil; {
		rested, err := k.maintainOnce(ctx)
		switch {
		case errors.Is(err, recipes.ErrClosed) && ctx.Err() == nil: // otherwise it may be the cause of ctx's end
			n.update(func() { n.presentIn, n.closing, n.result = nil, true, err })
			return
		case err != nil && ctx.Err() == nil:
			n.update(func() { n.lastErr = err })
		case rested:
			pause = 0
			continue
		}
		if pause > 0 {
			backoff.Sleep(ctx, pause)
		}
		pause = min(max(backoff.First, 2*pause), backoff.Longest)
	}
	n.update(func() { n.closing = true })
	err := k.remove()
	n.update(func() { n.presentIn, n.result = nil, err })
}

// maintainer is the state of the goroutine that maintains a Znode. No other one writes the znode.
type maintainer struct {
	*Znode
	mayExist        bool      // the znode may exist because of a request of this goroutine
	version         int32     // of the data, at the last check
	touchedAt       time.Time // zero if the znode was created or missing since
	outcomeUnknown  bool      // of the last write
	takeOverPending bool      // takeOver is set and the znode has not existed yet
}

// maintainOnce checks the znode, creates or takes it over if needed, and then waits for something
// to do. rested reports whether the goroutine waited.
func (k *maintainer) maintainOnce(ctx context.Context) (rested bool, err error) {
	missing, made := k.presentIn == nil, false
	if missing {
		if made, err = k.create(ctx); err != nil {
			return false, err
		}
	}
	s, err := k.client.AwaitSession(ctx) // waitForChange returns at once without a session
	if err != nil {
		return false, err
	}
	stat, watch, err := k.client.ExistsW(ctx, k.path)
	switch {
	case err != nil:
		return false, err
	// the Stat may be of another session
	case s != k.client.Session(), s.Context().Err() != nil:
		return false, nil
	case stat == nil:
		k.markMissing(nil)
		return false, nil
	case !k.isOwn(stat, s):
		k.markMissing(fmt.Errorf("%w (0x%x)", recipes.ErrTaken, int64(stat.EphemeralOwner)))
		k.mayExist = false
		if k.takeOverPending && stat.NumChildren == 0 {
			return false, k.takeOver(ctx, stat)
		}
		waitForChange(ctx, s, watch, nil, nil)
		return true, nil
	}
	found := missing && !made // it existed before and may have other data
	k.mayExist, k.version, k.takeOverPending = true, stat.Version, false
	k.update(func() {
		k.presentIn, k.lastErr = s, nil
		if found {
			k.writtenRevision = -1
		}
	})
	return k.keepData(ctx, s, watch)
}

// keepData waits while the znode exists, and writes new data.
func (k *maintainer) keepData(ctx context.Context, s *recipes.Session, watch <-chan client.Event) (rested bool, err error) {
	for {
		if again, err := k.write(ctx, s); again || err != nil {
			return rested, err
		}
		late, err := k.touch(ctx)
		if err != nil {
			return rested, err
		}
		event, woken := waitForChange(ctx, s, watch, late, k.wake)
		rested = true
		switch {
		case woken:
			continue
		case k.opts.Ephemeral && s.Context().Err() != nil:
			k.markMissing(context.Cause(s.Context()))
		case event == proto.EventDeleted:
			k.markMissing(nil)
		}
		return true, nil
	}
}

// waitForChange returns when the watch fires, which it also does if the session ends or may have
// missed a change, when the session or ctx ends, or when late or wake delivers. woken is set for
// the last two.
func waitForChange(ctx context.Context, s *recipes.Session, watch <-chan client.Event, late <-chan time.Time, wake <-chan struct{}) (event proto.EventType, woken bool) {
	select {
	case e := <-watch: // zero if another receiver of this Client got the event
		return e.Type, false
	case <-s.Context().Done():
	case <-ctx.Done():
	case <-wake:
		return 0, true
	case <-late:
		return 0, true
	}
	return 0, false
}

// create creates the znode. An existing znode is no error.
func (k *maintainer) create(ctx context.Context) (made bool, err error) {
	k.mu.Lock()
	data, revision, path := k.data, k.revision, k.path
	k.mu.Unlock()
	o := k.opts
	o.Parents = true
	if o.Sequential, o.Protected = path == "", path == ""; o.Protected {
		path = k.requestedPath // not named yet: only a GUID finds the znode after a lost answer
	}
	s := k.client.Session() // if the session changes meanwhile, the next check notices
	k.mayExist = true
	created, err := k.client.Idempotent().Create(ctx, path, data, o)
	switch {
	case errors.Is(err, proto.ErrNodeExists):
		return false, nil
	case err != nil:
		return false, err
	}
	k.update(func() { k.path, k.presentIn, k.writtenRevision, k.lastErr = created, s, revision, nil })
	k.touchedAt, k.takeOverPending, k.outcomeUnknown = time.Time{}, false, false
	return true, nil
}

// takeOver replaces another session's znode. A write that the other session sent just before must
// not match the version of the new znode, so the new version is either greater than the old one or
// less by many writes.
func (k *maintainer) takeOver(ctx context.Context, stat *proto.Stat) error {
	k.mu.Lock()
	data, revision := k.data, k.revision
	k.mu.Unlock()
	s := k.client.Session() // if applied in a later session, the next check notices
	k.mayExist = true
	del := client.DeleteOp(k.path, stat.Version)
	ops := []client.Op{del, client.CreateOp(k.path, nil, client.CreateOptions{Ephemeral: true, ACL: k.opts.ACL})}
	last := stat.Version
	if last < 0 || last > mostSkippedVersions {
		last = 0
	}
	for v := range last {
		ops = append(ops, client.SetOp(k.path, nil, v))
	}
	ops = append(ops, client.SetOp(k.path, data, last))
	results, err := k.client.Multi(ctx, ops...)
	if errors.Is(err, proto.ErrNoAuth) { // ACL may forbid writes, also those of the other session
		results, err = k.client.Multi(ctx, del, client.CreateOp(k.path, data, client.CreateOptions{Ephemeral: true, ACL: k.opts.ACL}))
	}
	switch {
	case err == nil && len(results) > 1:
		k.takeOverPending = false
		k.update(func() { k.presentIn, k.writtenRevision, k.lastErr = s, revision, nil })
		return nil
	case errors.Is(err, proto.ErrNoAuth): // the znode's ACL forbids replacing it
		k.takeOverPending = false
		return nil
	case recipes.Refused(err):
		return nil // the znode was changed or deleted
	}
	return err
}

// mostSkippedVersions limits the size of a takeover. After that many writes of the new owner, a
// write that the previous owner sent before the takeover is no longer on its way.
const mostSkippedVersions = 20

// write writes the data if the znode, last seen in session s, does not have them. again means that
// the znode must be checked first: others changed it, or the connection or the session is lost.
func (k *maintainer) write(ctx context.Context, s *recipes.Session) (again bool, err error) {
	k.mu.Lock()
	data, revision, written := k.data, k.revision, k.writtenRevision
	k.mu.Unlock()
	if written == revision {
		return false, nil
	}
	in, cancel := k.inSession(ctx, s)
	defer cancel()
	stat, err := k.set(in, s, data)
	switch {
	case errors.Is(err, proto.ErrBadVersion), errors.Is(err, proto.ErrNoNode):
		return true, nil
	case err != nil && ctx.Err() == nil && in.Err() != nil:
		k.outcomeUnknown = true
		return true, nil
	case err != nil:
		return false, err
	}
	k.version, k.outcomeUnknown = stat.Version, false
	k.update(func() { k.writtenRevision, k.lastErr = revision, nil })
	return false, nil
}

// set sets the data of the znode. If the outcome of the last write is unknown, set reads the znode
// first, so that readers do not see the same data set twice.
func (k *maintainer) set(ctx context.Context, s *recipes.Session, data []byte) (*proto.Stat, error) {
	if k.outcomeUnknown {
		current, stat, err := k.client.Get(ctx, k.path)
		if err != nil || k.isOwn(stat, s) && bytes.Equal(current, data) {
			return stat, err
		}
	}
	return k.client.Idempotent().Set(ctx, k.path, data, k.version)
}

// inSession returns a context for requests that change the znode. If the znode is an ephemeral, the
// context also ends with s, and ends while the Client is not connected. Client looks at the context
// before each attempt, so no attempt is queued without a connection: if s ends, a wrapped
// connection would send it in the next session, and the znode may be another session's by then.
// cancel must be called.
func (k *maintainer) inSession(ctx context.Context, s *recipes.Session) (in context.Context, cancel context.CancelFunc) {
	if !k.opts.Ephemeral {
		return ctx, func() {}
	}
	session, cancel := s.Within(ctx)
	inner, end := context.WithCancelCause(session)
	return checkedctx.New(inner, func() {
		// looking at session ends it, and with it inner, if its time is over
		if session.Err() == nil && !k.isConnected() {
			end(recipes.ErrNoServer)
		}
	}), cancel
}

func (k *maintainer) isConnected() bool {
	state := k.client.State()
	return state == recipes.Connected || state == recipes.Reconnected
}

func (k *maintainer) markMissing(why error) {
	k.touchedAt = time.Time{}
	k.update(func() { k.presentIn, k.lastErr = nil, why })
}

// isOwn reports whether the znode with stat is the maintained znode: an ephemeral of session s, or
// not an ephemeral at all, as requested. Two Znodes of a session with one path share the znode.
func (k *maintainer) isOwn(stat *proto.Stat, s *recipes.Session) bool {
	if k.opts.Ephemeral {
		return int64(stat.EphemeralOwner) == s.ID()
	}
	return stat.EphemeralOwner == 0
}

// touchName is Curator's name for the child that keeps a znode with a TTL alive. Setting the znode
// itself would fire the data watches of its readers.
const touchName = "touch"

// touch sets the child twice per TTL, first at once. The channel delivers when the next time has
// come; nil without a TTL.
//
// The znode itself has the TTL too: if this process dies before the child exists, the server
// deletes the znode one TTL after its last change. A container that never had a child would stay
// forever.
func (k *maintainer) touch(ctx context.Context) (<-chan time.Time, error) {
	if k.opts.TTL == 0 {
		return nil, nil
	}
	due := k.opts.TTL / 2
	if passed := time.Since(k.touchedAt); passed < due {
		return time.After(due - passed), nil
	}
	if err := k.touchChild(ctx); err != nil {
		return nil, err
	}
	k.touchedAt = time.Now()
	return time.After(due), nil
}

func (k *maintainer) touchChild(ctx context.Context) error {
	path := k.path + "/" + touchName
	var err error = proto.ErrNoNode
	if !k.touchedAt.IsZero() {
		_, err = k.client.Idempotent().Set(ctx, path, nil, -1)
	}
	if errors.Is(err, proto.ErrNoNode) {
		_, err = k.client.Idempotent().Create(ctx, path, nil, recipes.CreateOptions{TTL: k.opts.TTL, ACL: k.opts.ACL})
	}
	if errors.Is(err, proto.ErrNodeExists) {
		_, err = k.client.Idempotent().Set(ctx, path, nil, -1)
	}
	if errors.Is(err, proto.ErrNoNode) { // the znode is gone, and its watch fires
		return nil
	}
	return err
}

// remove deletes the znode, with retries until the server has answered or the Client is closed.
//
// If the znode is known to exist, the delete is the only request. Otherwise (without a connection,
// after a lost answer, or after an abandoned create) remove checks first whether the znode is still
// ours. The check follows a sync, because another server may lag. The delete is a multi, because a
// plain delete would be repeated without a check.
//
// An ephemeral is deleted only in the session in which it was seen; see inSession.
func (k *maintainer) remove() error {
	// without a name the znode was protected, and Client.Create deletes it
	if k.opts.TTL != 0 || !k.mayExist || k.path == "" {
		return nil
	}
	ctx := context.Background()
	k.mu.Lock()
	s, sure := k.presentIn, k.isPresent()
	k.mu.Unlock()
	sure = sure && k.isConnected()
	var result error
	backoff.Retry(ctx, func() bool {
		own, err := true, error(nil)
		if !sure {
			s, own, err = k.look(ctx)
		}
		if err == nil && own {
			err = k.delete(ctx, s)
		}
		switch {
		case err == nil, errors.Is(err, proto.ErrNoNode):
			return true
		case errors.Is(err, recipes.ErrClosed), recipes.Refused(err) && !errors.Is(err, recipes.ErrHungUp):
			result = k.wrapErr(err)
			return true
		}
		sure = false
		return false
	})
	return result
}

func (k *maintainer) delete(ctx context.Context, s *recipes.Session) error {
	in, cancel := k.inSession(ctx, s)
	defer cancel()
	_, err := k.client.Multi(in, client.DeleteOp(k.path, -1))
	return err
}

func (k *maintainer) look(ctx context.Context) (s *recipes.Session, own bool, err error) {
	if err := k.client.Sync(ctx, k.path); err != nil {
		return nil, false, err
	}
	s, err = k.client.AwaitSession(ctx)
	if err != nil {
		return nil, false, err
	}
	stat, err := k.client.Exists(ctx, k.path)
	if err == nil && k.client.Session() != s {
		err = recipes.ErrSessionLost // the Stat may be of another session
	}
	// a znode of an earlier session was deleted with it
	return s, stat != nil && k.isOwn(stat, s), err
}
