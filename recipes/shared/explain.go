package shared

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Explanation is how a Value or Number is, as seen from outside.
type Explanation struct {
	Versioned[[]byte]
	// Writers are those that have changed it with this package in their present session, and have not been closed.
	Writers []recipes.Contender
	// Lock is the line of those whose change was promoted, and of others that use the same lock.
	Lock recipes.Contention
}

// Explain says how the value at path is. lock is the path of PromotedToLock; "" if there is none.
func Explain(ctx context.Context, c *recipes.Client, path, lock string) (Explanation, error) {
	v, err := NewValue(c, path).Get(ctx)
	if err != nil || !v.Exists() {
		return Explanation{}, err
	}
	e := Explanation{Versioned: v}
	children, _, err := c.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return e, err
	}
	var markers []string
	for _, name := range children {
		if exactlyonce.IsMarker(name) {
			markers = append(markers, znodepath.Join(path, name))
		}
	}
	if e.Writers, err = contend.Read(ctx, c, markers); err != nil || lock == "" {
		return e, err
	}
	e.Lock, err = explainLine(ctx, c, lock)
	return e, err
}

// LeaseExplanation is how a lease is, as seen from outside.
type LeaseExplanation struct {
	Holder string // "" if there is none
	End    time.Time
	Since  time.Time // when it was obtained last, by the leader's clock
	Over   bool      // by the clock of who asks
	// Lookers are those that look at this moment whether they can have it.
	Lookers recipes.Contention
}

// ExplainLease says who has the lease at path; one part of a NewMultiLease is at path/0.
func ExplainLease(ctx context.Context, c *recipes.Client, path string) (e LeaseExplanation, err error) {
	if e.Lookers, err = explainLine(ctx, c, path); err != nil {
		return e, err
	}
	data, stat, err := c.Get(ctx, znodepath.Join(path, holderName))
	if err != nil {
		if errors.Is(err, zk.ErrNoNode) {
			return e, nil
		}
		return e, err
	}
	e.Since = time.UnixMilli(stat.Mtime)
	e.Holder, e.End, err = decodeLease(data)
	e.Over = err == nil && !time.Now().Before(e.End)
	return e, err
}

// explainLine is the line of a mutex.
func explainLine(ctx context.Context, c *recipes.Client, dir string) (recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, dir, func(name string) bool { return !strings.HasPrefix(name, holderName) })
	if err != nil || len(all) == 0 {
		return recipes.Contention{}, err
	}
	return recipes.Contention{Holders: all[:1], Waiters: all[1:]}, nil
}
