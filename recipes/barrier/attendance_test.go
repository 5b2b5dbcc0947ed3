package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/barrier"
)

// attendance records who was in a double barrier and when, and checks that the barrier never opened
// early.
type attendance struct {
	members int

	mu     sync.Mutex
	stays  time.Duration // how long each member stays in
	all    []*attended
	n      int // rounds that some member has completed
	broken []error
}

// attended is a call of Enter and what followed.
type attended struct {
	entered bool
	ctx     context.Context // of the Participant
	leaving bool            // it has begun to leave, or has died
	gone    time.Time       // from then on its znode is certainly gone; zero if not known yet
}

// lingers is how long the znode of a member that failed may exist: until its session has expired.
const lingers = 2 * recipetest.Timeout

func newAttendance(members int, stays time.Duration) *attendance {
	return &attendance{members: members, stays: stays}
}

// slower makes rounds take a second from now on.
func (a *attendance) slower() { a.locked(func() { a.stays = time.Second }) }

// work goes through rounds until ctx ends.
func (a *attendance) work(ctx context.Context, d *barrier.Double) {
	for ctx.Err() == nil {
		a.once(ctx, d)
	}
}

// once goes through one round.
func (a *attendance) once(ctx context.Context, d *barrier.Double) {
	x := &attended{}
	a.locked(func() { a.all = append(a.all, x) })
	m, err := d.Enter(ctx)
	if err != nil {
		a.locked(func() { x.leaving, x.gone = true, time.Now().Add(lingers) })
		return
	}
	a.entered(x, m)
	var stays time.Duration
	a.locked(func() { stays = a.stays })
	select {
	case <-time.After(stays):
	case <-m.Context().Done():
	}
	a.locked(func() { x.leaving = true })
	var before []*attended
	a.locked(func() {
		for _, o := range a.all {
			if o.entered && !o.leaving {
				before = append(before, o)
			}
		}
	})
	err = m.Leave(ctx)
	a.locked(func() {
		if err != nil {
			x.gone = time.Now().Add(lingers)
			return
		}
		x.gone = time.Now()
		a.n++
		for _, o := range before {
			if !o.leaving && o.ctx.Err() == nil {
				a.broken = append(a.broken, fmt.Errorf("%s has left while another member is in", m.Path()))
			}
		}
	})
}

// entered checks that enough members were in, or one that had entered correctly.
func (a *attendance) entered(x *attended, m *barrier.Participant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.entered, x.ctx = true, m.Context()
	if x.ctx.Err() != nil {
		return
	}
	in, open := 0, false
	for _, o := range a.all {
		if o.gone.IsZero() || time.Now().Before(o.gone) {
			in++
			open = open || o != x && o.entered
		}
	}
	if in < a.members && !open {
		a.broken = append(a.broken, fmt.Errorf("%s entered when %d of %d members were in", m.Path(), in, a.members))
	}
}

func (a *attendance) locked(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// rounds returns the number of completed rounds.
func (a *attendance) rounds() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func (a *attendance) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.broken...)
}
