package shared

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// optimistic tries until nobody is faster, or the policy has enough.
func (v *Value) optimistic(ctx context.Context, f func([]byte) ([]byte, error), change *Change[[]byte]) (bool, error) {
	begun := time.Now()
	for {
		change.Optimistic++
		if done, err := v.tryUpdate(ctx, f, change); done || err != nil {
			return done, err
		}
		wait, again := v.cfg.optimistic(change.Optimistic, time.Since(begun))
		if !again {
			return false, nil
		}
		if err := v.pause(ctx, wait); err != nil {
			return false, err
		}
	}
}

// promoted tries with the lock, where those only are faster that have not been slow for long enough. The lock makes it likely and the version
// makes it right: it does not matter if the lock is lost meanwhile.
func (v *Value) promoted(ctx context.Context, f func([]byte) ([]byte, error), change *Change[[]byte]) (err error) {
	held, err := contend.Acquire(ctx, v.client, v.cfg.lock, "lock-", nil, contend.Exclusive)
	if err != nil {
		return err
	}
	defer func() {
		if released := held.Release(ctx); err == nil && !errors.Is(released, recipes.ErrOutcomeUnknown) {
			err = released // else it goes on in the background, and the change is done
		}
	}()
	for {
		change.Promoted++
		if done, err := v.tryUpdate(ctx, f, change); done || err != nil {
			return err
		}
	}
}

// tryUpdate is one try. What it found and made is in change if it is done.
func (v *Value) tryUpdate(ctx context.Context, f func([]byte) ([]byte, error), change *Change[[]byte]) (bool, error) {
	before, err := v.Get(ctx)
	if err != nil {
		return false, err
	}
	data, err := f(before.Value)
	if err != nil {
		return false, err
	}
	after, done, err := v.CompareAndSet(ctx, before, data)
	if done {
		change.Before, change.After = before, after
	}
	return done, err
}

func (v *Value) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &recipes.Error{Op: "update", Path: v.path, Err: context.Cause(ctx)}
	}
}
