package shared

import (
	"context"
	"strings"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Explanation describes a Value or Number, as read from its znodes.
type Explanation struct {
	Versioned[[]byte]
	// Writers are the Values and Numbers of this package that have changed the value in their
	// present session and are not closed.
	Writers []recipes.Contender
	// Lock is the line of the lock: changes that were promoted, and other users of the same lock.
	Lock recipes.Contention
}

// Explain describes the value, which may be of another kind.
func (v *atomicValue[T]) Explain(ctx context.Context) (Explanation, error) {
	c, path, lock := v.client, v.path, v.cfg.lock
	now, err := NewValue(c, path).Get(ctx)
	if err != nil || !now.Exists() {
		return Explanation{}, err
	}
	e := Explanation{Versioned: now}
	if e.Writers, err = contend.ReadAll(ctx, c, path, exactlyonce.IsMarker); err != nil || lock == "" {
		return e, err
	}
	e.Lock, err = contend.Contention(ctx, c, lock, isContender)
	return e, err
}

// LeaseExplanation describes a lease, as read from its znodes.
type LeaseExplanation struct {
	Holder string // "" if there is none
	End    time.Time
	Since  time.Time // when it was last obtained, by the leader's clock
	Over   bool      // whether End has passed by this process's clock
	// Candidates are the processes that are trying to obtain the lease at this moment.
	Candidates recipes.Contention
}

// ExplainLease describes the lease at path. The parts of a NewMultiLease are at path/0, path/1 ...
func ExplainLease(ctx context.Context, c *recipes.Client, path string) (e LeaseExplanation, err error) {
	if e.Candidates, err = contend.Contention(ctx, c, path, isContender); err != nil {
		return e, err
	}
	data, stat, err := c.Get(ctx, znodepath.Join(path, holderName))
	if err != nil {
		return e, contend.IgnoreMissing(err)
	}
	e.Since = time.UnixMilli(stat.MtimeMs)
	e.Holder, e.End, err = decodeLease(data)
	e.Over = err == nil && !time.Now().Before(e.End)
	return e, err
}

// isContender tells the znodes of a line from the znode of a lease's holder.
func isContender(name string) bool { return !strings.HasPrefix(name, holderName) }
