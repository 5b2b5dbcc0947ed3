package shared

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Lease is a right that a holder has until a time of day, even if its process ends: for example, to
// run an hourly job on the same machine each time, and on another machine only if the first does
// not come back. The clocks must agree within much less than the duration. This is kazoo's
// NonBlockingLease. Safe for concurrent use.
type Lease struct {
	client   *recipes.Client
	paths    []string
	holder   string
	duration time.Duration
}

// NewLease returns the lease at path. If the same holder obtains the lease again, from any process,
// the duration begins anew.
func NewLease(c *recipes.Client, path, holder string, duration time.Duration) *Lease {
	return newLease(c, holder, duration, path)
}

// NewMultiLease returns a lease that n holders can have at a time. Its parts are leases at path/0,
// path/1 ... This is kazoo's MultiNonBlockingLease.
func NewMultiLease(c *recipes.Client, path string, n int, holder string, duration time.Duration) *Lease {
	var paths []string
	for i := range n {
		paths = append(paths, znodepath.Join(path, strconv.Itoa(i)))
	}
	return newLease(c, holder, duration, paths...)
}

func newLease(c *recipes.Client, holder string, duration time.Duration, paths ...string) *Lease {
	duration = min(duration, math.MaxInt64-time.Second) // take adds a second
	return &Lease{client: c, paths: paths, holder: holder, duration: duration}
}

// Obtain takes or renews the lease, or returns recipes.ErrNotAcquired. Obtain waits only for
// processes that are obtaining the lease at the same time.
//
// The Context of the result ends when the lease is over or released, with the cause
// recipes.ErrNotHeld; its Deadline is the end. Its Err and Done look at the wall clock themselves.
// A goroutine that waits learns of the end from a timer, which does not notice when that clock is
// set. Guard and Commit also fail if anybody has obtained the lease since. Token rises each time
// the lease is obtained.
//
// Release ends the lease early, which kazoo cannot do. If the lease is over, or was obtained again,
// Release changes nothing. If ctx ends first, the release continues in the background as long as
// the RetryPolicy says.
func (l *Lease) Obtain(ctx context.Context) (*recipes.Hold, error) {
	err := error(recipes.ErrNotAcquired)
	if l.duration <= 0 {
		return nil, fmt.Errorf("shared: obtain a lease for %v: %w: choose longer", l.duration, recipes.ErrArgument)
	}
	for _, path := range l.paths {
		var held *recipes.Hold
		if held, err = l.obtain(ctx, path); err == nil || !errors.Is(err, recipes.ErrNotAcquired) && !errors.Is(err, recipes.ErrFormat) {
			return held, err
		}
	}
	return nil, err
}

// With obtains the lease, runs f, and releases the lease, whether f fails or not. The context of f
// ends with ctx and when the lease is over.
func (l *Lease) With(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if err := holding.CheckFunc(f == nil); err != nil {
		return err
	}
	held, err := l.Obtain(ctx)
	if err != nil {
		return err
	}
	in, cancel := held.Within(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, held.Release(ctx))
	}()
	return f(in)
}

func (l *Lease) obtain(ctx context.Context, path string) (*recipes.Hold, error) {
	holder := znodepath.Join(path, holderName)
	if _, err := l.checkFree(ctx, holder); err != nil { // first without the lock, which costs more
		return nil, err
	}
	for {
		turn, err := contend.Acquire(ctx, l.client, path, "__lock__", []byte(l.holder), contend.Exclusive)
		if err != nil {
			return nil, err
		}
		held, err := l.take(ctx, turn, holder)
		released := turn.Release(ctx)
		switch {
		case err == nil, errors.Is(released, recipes.ErrOutcomeUnknown):
		case ctx.Err() == nil && (errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrOutcomeUnknown)):
			continue // this holder may take the lease again, in case it was taken
		case errors.Is(err, proto.ErrBadVersion), errors.Is(err, proto.ErrNodeExists), errors.Is(err, proto.ErrNoNode):
			continue // written without the lock: by Release, or by kazoo
		}
		return held, err
	}
}

// take writes the holder's znode while the caller has the lock, unless another has the lease.
func (l *Lease) take(ctx context.Context, turn *recipes.Hold, holder string) (*recipes.Hold, error) {
	stat, err := l.checkFree(ctx, holder)
	if err != nil {
		return nil, err
	}
	// The format has whole seconds. Rounded up: a lease lasts no less than was asked for.
	end := time.Now().Add(l.duration + time.Second - 1).UTC().Truncate(time.Second)
	version := int32(-1)
	if stat != nil {
		version = stat.Version
	}
	set := client.SetOp(holder, encodeLease(l.holder, end), version)
	ops := []client.Op{set}
	if stat == nil {
		// kazoo creates the znode with its data, as version 0. Setting them after the creation
		// makes every version either kazoo's or ours.
		ops = []client.Op{client.CreateOp(holder, nil, client.CreateOptions{}), set}
	}
	results, err := turn.Commit(ctx, ops...)
	if err != nil {
		return nil, err
	}
	now := results[len(results)-1].Stat
	h := recipes.HoldSpec{Path: holder, Token: int64(now.Mzxid), Checks: []client.Op{client.CheckOp(holder, now.Version)}}
	h.Context, h.Cancel = untilTime(end)
	h.Release = func(ctx context.Context, lost bool) error {
		if lost {
			return nil
		}
		return l.release(ctx, holder, now.Version)
	}
	return l.client.NewHold(h), nil
}

// checkFree returns the holder znode's Stat, nil if missing, or an error if the lease is not free.
func (l *Lease) checkFree(ctx context.Context, holder string) (*proto.Stat, error) {
	data, stat, err := l.client.Get(ctx, holder)
	if err != nil {
		return nil, contend.IgnoreMissing(err)
	}
	name, end, err := decodeLease(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("shared: obtain %s: %w", holder, err)
	case name != l.holder && time.Now().Before(end):
		return nil, fmt.Errorf("shared: obtain %s: %q has the lease until %s: %w", holder, name, end.Format(time.RFC3339), recipes.ErrNotAcquired)
	}
	return stat, nil
}

// release writes the present time as the end. After a deletion the versions would begin again, and
// a repeated request after a lost answer could end the next holder's lease.
func (l *Lease) release(ctx context.Context, path string, version int32) error {
	return calls.Finish(ctx, l.client, "release", path, func(ctx context.Context) error {
		_, err := l.client.Idempotent().Set(ctx, path, encodeLease(l.holder, time.Now()), version)
		if errors.Is(err, proto.ErrNoNode) || errors.Is(err, proto.ErrBadVersion) {
			err = nil
		}
		return err
	})
}

// untilTime returns a context that ends at a time of day or with cancel. Until then a timer runs.
func untilTime(end time.Time) (context.Context, context.CancelCauseFunc) {
	timed, stop := context.WithDeadlineCause(context.Background(), end, recipes.ErrNotHeld)
	inner, cancel := context.WithCancelCause(timed)
	check := func() {
		if !time.Now().Before(end) {
			cancel(recipes.ErrNotHeld)
		}
	}
	return checkedctx.New(inner, check), func(cause error) {
		cancel(cause)
		stop()
	}
}
