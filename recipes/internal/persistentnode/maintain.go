package persistentnode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// The pauses between tries that fail; they grow from the first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// run keeps the znode until ctx ends, and deletes it then.
func (n *Znode) run(ctx context.Context) {
	k := &maintainer{Znode: n, states: n.client.States(ctx), takeOverPending: n.opts.TakeOver}
	defer close(n.done)
	for pause := time.Duration(0); ctx.Err() == nil; {
		rested, err := k.maintainOnce(ctx)
		switch {
		case errors.Is(err, recipes.ErrClosed):
			n.update(func() { n.presentIn, n.closed, n.result = nil, true, err })
			return
		case err != nil && ctx.Err() == nil:
			n.update(func() { n.lastErr = err })
		case rested:
			pause = 0
			continue
		}
		sleep(ctx, pause)
		pause = min(max(firstPause, 2*pause), lastPause)
	}
	err := k.remove()
	n.update(func() { n.presentIn, n.closed, n.result = nil, true, err })
}

// keeper is what the goroutine that keeps a Node knows about the znode. It alone writes it.
type maintainer struct {
	*Znode
	states          <-chan recipes.ConnState
	present         bool  // it was there when it was last looked at, and is ours
	mayExist        bool  // it may be there, as far as this goroutine has done something about it
	version         int32 // of its data, when it was last looked at
	touchedAt       time.Time
	touchExists     bool // the one that is touched is there
	takeOverPending bool // another session's: it has not been there yet
}

// round looks at the znode, makes it what it shall be, and rests until there is something to do. It reports whether it rested.
func (k *maintainer) maintainOnce(ctx context.Context) (rested bool, err error) {
	made := false
	if !k.present {
		made, err = k.create(ctx)
		if err != nil {
			return false, err
		}
	}
	s := k.client.Session()
	if k.opts.ephemeral() {
		if s, err = k.client.AwaitSession(ctx); err != nil {
			return false, err
		}
	}
	stat, fires, err := k.client.ExistsW(ctx, k.path)
	switch {
	case err != nil:
		return false, err
	case s != k.client.Session(), k.opts.ephemeral() && s.Context().Err() != nil: // whose was it?
		return false, nil
	case stat == nil:
		k.markMissing(nil)
		return false, nil
	case !k.isOwn(stat, s):
		k.markMissing(fmt.Errorf("%w (0x%x)", ErrTaken, stat.EphemeralOwner))
		k.mayExist = false
		if k.takeOverPending && stat.NumChildren == 0 {
			return false, k.takeOver(ctx, stat)
		}
		k.waitForChange(ctx, s, fires, nil, nil)
		return true, nil
	}
	found := !k.present && !made // it was there before, with data that may be others
	k.present, k.mayExist, k.version, k.takeOverPending = true, true, stat.Version, false
	k.update(func() {
		k.presentIn, k.lastErr = s, nil
		if found {
			k.writtenRevision = -1
		}
	})
	return k.keepData(ctx, s, fires)
}

// hold rests while the znode is there, and writes data that are set meanwhile.
func (k *maintainer) keepData(ctx context.Context, s *recipes.Session, fires <-chan zk.Event) (rested bool, err error) {
	for {
		if again, err := k.write(ctx); again || err != nil {
			return rested, err
		}
		late, err := k.touch(ctx)
		if err != nil {
			return rested, err
		}
		event, woken := k.waitForChange(ctx, s, fires, late, k.wake)
		rested = true
		switch {
		case woken:
			continue
		case k.opts.ephemeral() && s.Context().Err() != nil:
			k.markMissing(context.Cause(s.Context()))
		case event == zk.EventNodeDeleted:
			k.markMissing(nil)
		}
		return true, nil
	}
}

// rest waits for the watch, for a connection after none, for the end of the session or of ctx, and for what wakes: late and data to write.
//
// With a new connection the watch is set again, but go-zookeeper may tell the server too late a zxid for what had been seen, so that it does
// not fire for what happened meanwhile.
func (k *maintainer) waitForChange(ctx context.Context, s *recipes.Session, fires <-chan zk.Event, late <-chan time.Time, wake <-chan struct{}) (event zk.EventType, woken bool) {
	for {
		select {
		case e := <-fires: // or it is closed: somebody else of this Client has got the event
			return e.Type, false
		case state, open := <-k.states:
			if !open {
				k.states = nil
			}
			if state != recipes.Reconnected {
				continue
			}
		case <-s.Context().Done():
		case <-ctx.Done():
		case <-wake:
			return 0, true
		case <-late:
			return 0, true
		}
		return 0, false
	}
}

// make makes the znode. It is no error if it is there.
func (k *maintainer) create(ctx context.Context) (made bool, err error) {
	k.mu.Lock()
	data, mine, path := k.data, k.revision, k.path
	k.mu.Unlock()
	o := recipes.CreateOptions{Mode: k.opts.namedMode(), TTL: k.opts.TTL, ACL: k.opts.ACL, Parents: true}
	if path == "" { // then its name is found again after a lost answer by its GUID alone
		path, o.Mode, o.Protected = k.requestedPath, k.opts.Mode, true
	}
	s := k.client.Session() // if another takes its place meanwhile, the look that follows tells
	k.mayExist = true
	created, err := k.client.Create(ctx, path, data, o)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return false, nil
	case err != nil:
		return false, err
	}
	k.update(func() { k.path, k.presentIn, k.writtenRevision, k.lastErr = created, s, mine, nil })
	k.touchExists, k.takeOverPending = false, false
	return true, nil
}

// takeOver puts the znode in the place of another session's.
func (k *maintainer) takeOver(ctx context.Context, stat *zk.Stat) error {
	k.mu.Lock()
	data, mine := k.data, k.revision
	k.mu.Unlock()
	s := k.client.Session() // if it is done in the next one, the look that follows tells
	k.mayExist = true
	results, err := k.client.Multi(ctx, &zk.DeleteRequest{Path: k.path, Version: stat.Version},
		&zk.CreateRequest{Path: k.path, Data: data, Acl: k.opts.ACL, Flags: zk.FlagEphemeral})
	var e *recipes.Error
	switch {
	case err == nil && len(results) == 2:
		k.present, k.takeOverPending = true, false
		k.update(func() { k.presentIn, k.writtenRevision, k.lastErr = s, mine, nil })
		return nil
	case errors.Is(err, zk.ErrNoAuth): // whoever it is, he is not to be replaced
		k.takeOverPending = false
		return nil
	case errors.As(err, &e) && e.Refused():
		return nil // it is another one, or gone
	}
	return err
}

// write writes the data that the znode does not have. It reports whether the znode is another now, and must be looked at again.
func (k *maintainer) write(ctx context.Context) (again bool, err error) {
	k.mu.Lock()
	data, mine, written := k.data, k.revision, k.writtenRevision
	k.mu.Unlock()
	if written == mine {
		return false, nil
	}
	stat, err := k.client.Set(ctx, k.path, data, k.version)
	switch {
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		return true, nil
	case err != nil:
		return false, err
	}
	k.version = stat.Version
	k.update(func() { k.writtenRevision, k.lastErr = mine, nil })
	return false, nil
}

// gone notes that it is not there, or not ours.
func (k *maintainer) markMissing(why error) {
	k.present, k.touchExists = false, false
	k.update(func() { k.presentIn, k.lastErr = nil, why })
}

// ours reports whether a znode is the one that is kept: an ephemeral of the session, or, if that is wanted, no ephemeral. Two Nodes of one
// session take the same znode for theirs.
func (k *maintainer) isOwn(stat *zk.Stat, s *recipes.Session) bool {
	if k.opts.ephemeral() {
		return stat.EphemeralOwner == s.ID()
	}
	return !ownedBySession(stat.EphemeralOwner)
}

// ownedBySession tells ephemerals from containers and znodes with a TTL, which have no session where others have its number.
func ownedBySession(owner int64) bool {
	const ttl = 0xff // the first byte
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != ttl
}

func sleep(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
