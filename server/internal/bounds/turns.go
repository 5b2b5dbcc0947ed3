package bounds

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// turns shares out a limited amount among long frames. While not enough is left for the next frame,
// frames wait: their hosts take turns, and the frames of a host go on in the order in which they
// came. A frame that needs more than the limit gets it when nothing is taken.
//
// Invariant: what is taken stays within limit, or a single frame has taken it.
type turns struct {
	waiting atomic.Bool // frames wait

	mu     sync.Mutex // guards all below
	limit  int
	taken  int
	lines  []*line // of the hosts whose frames wait, the next one first
	closed bool
}

// line holds the frames of a host that wait, at least one, in the order in which they came.
type line struct {
	host   string
	frames []*claim
}

type claim struct {
	amount  int
	granted chan struct{} // closed when it is taken
}

// take waits for an amount, for a frame of owner. After each quarter of patience take calls
// meanwhile, and gives up, with false, if owner is gone.
func (t *turns) take(amount int, owner Sender, patience time.Duration, meanwhile func()) bool {
	mine, host := &claim{amount, make(chan struct{})}, owner.Host()
	t.mu.Lock()
	if i := slices.IndexFunc(t.lines, func(l *line) bool { return l.host == host }); i >= 0 {
		t.lines[i].frames = append(t.lines[i].frames, mine)
	} else {
		t.lines = append(t.lines, &line{host, []*claim{mine}})
	}
	t.grant()
	t.mu.Unlock()
	timer := time.NewTimer(patience / 4)
	defer timer.Stop()
	for {
		select {
		case <-mine.granted:
			return true
		case <-timer.C:
			meanwhile()
			if owner.Gone() && t.leave(mine) {
				return false
			}
			timer.Reset(patience / 4)
		}
	}
}

func (t *turns) leave(c *claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.lines, func(l *line) bool { return slices.Contains(l.frames, c) })
	if i < 0 {
		return false
	}
	its := t.lines[i]
	if its.frames = slices.DeleteFunc(its.frames, func(o *claim) bool { return o == c }); len(its.frames) == 0 {
		t.lines = slices.Delete(t.lines, i, i+1)
	}
	t.grant()
	return true
}

// grant gives the frames whose turn it is what they wait for. None overtakes a frame that needs
// more than what is left. t.mu is held.
func (t *turns) grant() {
	for len(t.lines) > 0 {
		its := t.lines[0]
		next := its.frames[0]
		if !t.closed && t.taken != 0 && t.taken+next.amount > t.limit {
			break
		}
		t.lines, its.frames = t.lines[1:], its.frames[1:]
		if len(its.frames) > 0 {
			t.lines = append(t.lines, its)
		}
		t.taken += next.amount
		close(next.granted)
	}
	t.waiting.Store(len(t.lines) > 0)
}

func (t *turns) release(amount int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken -= amount
	t.grant()
}

func (t *turns) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// close removes the limit, so that nobody waits for what is not given back.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.grant()
}
