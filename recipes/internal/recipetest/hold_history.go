package recipetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Holds records who held something, and when: locks, permits, leadership. Safe for concurrent use.
type HoldHistory struct {
	permits int
	begun   time.Time

	mu     sync.Mutex
	all    []*HoldRecord
	broken []error
}

// Hold is one that was begun.
type HoldRecord struct {
	holds  *HoldHistory
	ctx    context.Context
	token  int64
	takes  int
	begun  time.Duration
	active bool // not ended by End
}

// NewHolds returns a record of something that has so many permits:
//
//	a mutex, a leadership    1, and each Begin takes 1
//	a semaphore              n, and each Begin takes 1
//	a read/write lock        as many as there can be readers, who take 1, and writers take all
func NewHoldHistory(permits int) *HoldHistory {
	return &HoldHistory{permits: permits, begun: time.Now()}
}

// Begin records that something is held from now on until ctx, that of the holder, ends, or End. It is called at once when the
// holder has it. What ends at once, or had ended before, was never held.
//
// Two things are checked: no more than all permits are taken by those whose ctx is alive now; and token is greater than that of all who began
// before and can't hold it at the same time.
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

// End records that the holder gives it up. It is called before it is released, and may be left out: a release ends ctx.
func (n *HoldRecord) End() {
	n.holds.mu.Lock()
	defer n.holds.mu.Unlock()
	n.active = false
}

func (n *HoldRecord) String() string {
	return fmt.Sprintf("a hold of %d with token %#x from %v on", n.takes, n.token, n.begun)
}

// Len returns how many began.
func (h *HoldHistory) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// Err returns what was wrong, or nil.
func (h *HoldHistory) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.broken...)
}
