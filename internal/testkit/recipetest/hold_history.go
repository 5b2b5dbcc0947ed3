package recipetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// HoldHistory records and checks who held locks, permits or leadership, and when. Safe for
// concurrent use.
type HoldHistory struct {
	permits int
	begun   time.Time

	mu     sync.Mutex
	all    []*HoldRecord
	broken []error
}

// HoldRecord is a period of holding.
type HoldRecord struct {
	holds  *HoldHistory
	ctx    context.Context
	token  int64
	takes  int
	begun  time.Duration
	active bool // End was not called
}

// NewHoldHistory returns a history for something with this many permits:
//
//	a mutex, a leadership    1; each Begin takes 1
//	a semaphore              n; each Begin takes 1
//	a read/write lock        the greatest number of readers; a reader takes 1, a writer all
func NewHoldHistory(permits int) *HoldHistory {
	return &HoldHistory{permits: permits, begun: time.Now()}
}

// Begin records that something is held until ctx, the holder's Context, ends, or End is called. The
// holder must call Begin as soon as it holds. If ctx has ended already, nothing was held.
//
// Begin checks that the holders whose ctx is alive take no more than all permits, and that token is
// greater than those of all earlier holders that exclude this holder.
func (h *HoldHistory) Begin(ctx context.Context, token int64, takes int) *HoldRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := &HoldRecord{holds: h, ctx: ctx, token: token, takes: takes, begun: time.Since(h.begun), active: true}
	if ctx.Err() != nil {
		n.active = false
		return n
	}
	taken := takes
	var others []*HoldRecord
	for _, o := range h.all {
		if o.takes+takes > h.permits && o.token >= token {
			h.broken = append(h.broken, fmt.Errorf("recipetest: %v begins after %v", n, o))
		}
		if o.active && o.ctx.Err() == nil {
			taken += o.takes
			others = append(others, o)
		}
	}
	if taken > h.permits {
		h.broken = append(h.broken, fmt.Errorf("recipetest: %v begins while there are %v: %d of %d permits", n, others, taken, h.permits))
	}
	h.all = append(h.all, n)
	return n
}

// End records that the holder stops holding. End must be called before the release, or not at all,
// because the release ends ctx.
func (n *HoldRecord) End() {
	n.holds.mu.Lock()
	defer n.holds.mu.Unlock()
	n.active = false
}

func (n *HoldRecord) String() string {
	return fmt.Sprintf("a hold of %d with token %#x from %v on", n.takes, n.token, n.begun)
}

// Len returns the number of records.
func (h *HoldHistory) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// Err returns the violations, or nil.
func (h *HoldHistory) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.broken...)
}
