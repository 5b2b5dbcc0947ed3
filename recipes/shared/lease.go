package shared

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// ErrLeaseTaken means that another has the lease, and its time is not over.
var ErrLeaseTaken = errors.New("shared: lease is taken")

// ErrLeaseOver is the cause of the end of a Tenancy's context.
var ErrLeaseOver = errors.New("shared: lease is over")

// Lease is a right that one has until a time of day, whether or not it lives: such as to do the hourly work on the same machine each time, and
// on another only when that one does not come back. It is good for clocks that are right within less than the duration. It is
// kazoo's NonBlockingLease. Safe for concurrent use.
type Lease struct {
	client   *recipes.Client
	paths    []string
	holder   string
	duration time.Duration
}

// Tenancy is a lease that was obtained.
type Tenancy struct {
	client  *recipes.Client
	path    string // of the holder's znode
	holder  string
	version int32
	token   int64
	end     time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// NewLease returns the lease at path. Who obtains it with the same holder again, in whatever process, has it for duration from then on.
func NewLease(c *recipes.Client, path, holder string, duration time.Duration) *Lease {
	return &Lease{client: c, paths: []string{path}, holder: holder, duration: duration}
}

// NewMultiLease returns a lease that n can have, whose parts are leases at path/0, path/1 ... It is kazoo's MultiNonBlockingLease.
func NewMultiLease(c *recipes.Client, path string, n int, holder string, duration time.Duration) *Lease {
	l := &Lease{client: c, holder: holder, duration: duration}
	for i := range n {
		l.paths = append(l.paths, znodepath.Join(path, strconv.Itoa(i)))
	}
	return l
}

// Obtain takes the lease, or takes it again, or returns ErrLeaseTaken; it waits for those only who look at the same time.
func (l *Lease) Obtain(ctx context.Context) (*Tenancy, error) {
	err := error(ErrLeaseTaken)
	for _, path := range l.paths {
		var t *Tenancy
		if t, err = l.obtain(ctx, path); err == nil || !errors.Is(err, ErrLeaseTaken) && !errors.Is(err, ErrLeaseFormat) {
			return t, err
		}
	}
	return nil, err
}

// With runs f with the lease, and gives it back when f has returned without an error or not, as Release does: so nobody keeps it. The context of f ends with ctx,
// and when the lease is over.
func (l *Lease) With(ctx context.Context, f func(ctx context.Context) error) (err error) {
	t, err := l.Obtain(ctx)
	if err != nil {
		return err
	}
	in, cancel := whileAlive(ctx, t.ctx)
	defer func() {
		cancel()
		err = errors.Join(err, t.Release(ctx))
	}()
	return f(in)
}

// Context ends with the lease. Its Err and Done look at the clock on the wall themselves; who waits for it learns of the end from a timer,
// which does not notice when that clock is set.
func (t *Tenancy) Context() context.Context { return t.ctx }

// End is when it is over, if it is not obtained again.
func (t *Tenancy) End() time.Time { return t.end }

// Token is a zxid. Who obtains the lease later has a greater one.
func (t *Tenancy) Token() int64 { return t.token }

// Guard returns ops with a check in front that fails the whole multi if the lease was obtained again by anybody.
func (t *Tenancy) Guard(ops ...any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: t.path, Version: t.version}}, ops...)
}

// Commit carries out all ops, as recipes.Client.Multi does, if the lease is not over and nobody has obtained it since; else the error is
// recipes.ErrNotHeld, and nothing is done. The results are those of ops.
func (t *Tenancy) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if t.ctx.Err() != nil {
		return nil, &recipes.Error{Op: "commit", Path: t.path, Err: recipes.ErrNotHeld}
	}
	results, err := t.client.Multi(ctx, t.Guard(ops...)...)
	switch {
	case len(results) == 0:
		return nil, err
	case results[0].Error != nil:
		t.cancel(recipes.ErrNotHeld)
		return nil, &recipes.Error{Op: "commit", Path: t.path, Err: recipes.ErrNotHeld}
	}
	return results[1:], err
}

// Release ends the lease before its time, of which kazoo has nothing. Where it is over or was obtained again, nothing is done. If that can't be
// done before ctx ends, it goes on in the background, for as long as the RetryPolicy says, and the error's Unknown is set.
//
// The znode stays, with this moment as the end: if it were deleted, its versions would begin anew, and a second try after a lost answer could end
// the next one's lease.
func (t *Tenancy) Release(ctx context.Context) error {
	over := t.ctx.Err() != nil
	t.cancel(ErrLeaseOver)
	if over {
		return nil
	}
	done := make(chan error, 1) // who answers does not wait
	err := t.client.Background(ctx, func(ctx context.Context) {
		_, err := t.client.Set(ctx, t.path, encodeLease(t.holder, time.Now()), t.version)
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
			err = nil
		}
		done <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &recipes.Error{Op: "release", Path: t.path, Err: context.Cause(ctx), Unknown: true}
	}
}

// obtain takes the lease of one path.
func (l *Lease) obtain(ctx context.Context, path string) (*Tenancy, error) {
	holder := znodepath.Join(path, holderName)
	if _, err := l.look(ctx, holder); err != nil { // without the lock: who has it has it
		return nil, err
	}
	for {
		turn, err := contend.Acquire(ctx, l.client, path, "__lock__", []byte(l.holder), contend.Exclusive)
		if err != nil {
			return nil, err
		}
		t, err := l.take(ctx, turn, holder)
		released := turn.Release(ctx)
		switch {
		case err == nil, errors.Is(released, recipes.ErrOutcomeUnknown):
		case ctx.Err() == nil && (errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrOutcomeUnknown)):
			continue // whoever this lease is for may take it again, so it does no harm if it was taken
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
			continue // somebody wrote without the lock: the last holder ended his, a moment ago or long ago, or it is kazoo's
		}
		return t, err
	}
}

// take takes the lease while it is the caller's turn, if another does not have it.
func (l *Lease) take(ctx context.Context, turn *recipes.Hold, holder string) (*Tenancy, error) {
	stat, err := l.look(ctx, holder)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(l.duration).UTC().Truncate(time.Second)
	set := &zk.SetDataRequest{Path: holder, Data: encodeLease(l.holder, end), Version: -1}
	ops := []any{set}
	if stat == nil {
		// kazoo's has version 0: so no version is both kazoo's and ours.
		ops = []any{&zk.CreateRequest{Path: holder}, set}
	} else {
		set.Version = stat.Version
	}
	results, err := turn.Commit(ctx, ops...)
	if err != nil {
		return nil, err
	}
	now := results[len(results)-1].Stat
	t := &Tenancy{client: l.client, path: holder, holder: l.holder, version: now.Version, token: now.Mzxid, end: end}
	t.ctx, t.cancel = untilTime(end)
	return t, nil
}

// look returns the Stat of the holder's znode, nil if there is none, if the lease may be taken.
func (l *Lease) look(ctx context.Context, holder string) (*zk.Stat, error) {
	data, stat, err := l.client.Get(ctx, holder)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	who, end, err := decodeLease(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("shared: obtain %s: %w", holder, err)
	case who != l.holder && time.Now().Before(end):
		return nil, fmt.Errorf("shared: obtain %s: %w by %q until %s", holder, ErrLeaseTaken, who, end.Format(time.RFC3339))
	}
	return stat, nil
}
