package queue

import (
	"context"
	"slices"
)

// taker is one Take under way.
type taker struct {
	locked bool          // takes with a lock
	try    bool          // does not wait for an item
	got    chan taken    // capacity 1: who serves does not wait
	lead   chan struct{} // capacity 1: the baton
	number int           // in the order in which they came
	served bool          // got has something; belongs to who has the baton
	gone   bool          // nobody waits any more; guarded by engine.mu
}

// taken is what a taker gets: an item, nothing, or an error.
type taken struct {
	item *Item
	err  error
}

// Take waits for an item and takes it: nobody else gets it, and it is gone if the taker dies.
//
// When ctx ends, Take returns at once. An item that is being taken for it in that moment goes to another who waits here, or back to its
// place in the queue; the error's Unknown is set then, because that may fail with the session. With an error nothing was taken, but:
//   - recipes.ErrOutcomeUnknown and a Message with a Name: the session was lost while the item was being taken, or the Client's RetryPolicy had
//     enough, and it is gone from the queue, as far as could be seen. Somebody else may have it, or nobody but this caller.
//   - ErrFrame: it was taken, and Data is what its znode had.
func (e *engine) Take(ctx context.Context) (Message, error) {
	r := e.take(ctx, &taker{})
	return r.message(), r.err
}

// TryTake is Take that does not wait: false means that nothing can be taken now, as far as the server knows that the Client is connected to.
func (e *engine) TryTake(ctx context.Context) (Message, bool, error) {
	r := e.take(ctx, &taker{try: true})
	return r.message(), r.item != nil && r.err == nil, r.err
}

// TakeLocked waits for an item and locks it: it stays in the queue, and comes back if the taker dies, until Done. With ErrFrame there is an
// Item too. When ctx ends, nothing is taken, though the error's Unknown may be set while the lock is being let go.
func (e *engine) TakeLocked(ctx context.Context) (*Item, error) {
	if e.locks == "" {
		return nil, ErrNoLocks
	}
	r := e.take(ctx, &taker{locked: true})
	return r.item, r.err
}

// TryTakeLocked is TakeLocked that does not wait. Without an item it returns nil.
func (e *engine) TryTakeLocked(ctx context.Context) (*Item, error) {
	if e.locks == "" {
		return nil, ErrNoLocks
	}
	r := e.take(ctx, &taker{locked: true, try: true})
	return r.item, r.err
}

func (r taken) message() Message {
	if r.item == nil {
		return Message{}
	}
	return r.item.Message
}

// take waits until t has been served. One of those who wait has the baton and sees to all of them: what they ask of the server is asked once.
func (e *engine) take(ctx context.Context, t *taker) taken {
	if ctx.Err() != nil {
		return taken{err: e.ended(ctx, "take", false)}
	}
	t.got, t.lead = make(chan taken, 1), make(chan struct{}, 1)
	e.mu.Lock()
	e.came++
	t.number = e.came
	e.takers = append(e.takers, t)
	switch {
	case !e.baton:
		e.baton = true
		t.lead <- struct{}{}
	case t.try:
		select {
		case e.nudge <- struct{}{}:
		default:
		}
	}
	e.mu.Unlock()
	for {
		select {
		case r := <-t.got:
			return r
		case <-t.lead:
			e.leadOn(ctx, t)
		case <-ctx.Done():
			return e.leave(ctx, t)
		}
	}
}

// leave is for who does not wait any more.
func (e *engine) leave(ctx context.Context, t *taker) taken {
	e.mu.Lock()
	select {
	case r := <-t.got:
		e.mu.Unlock()
		return r
	default:
	}
	i := slices.Index(e.takers, t)
	if i < 0 { // an item is being taken for it
		t.gone = true
		e.mu.Unlock()
		return taken{err: e.ended(ctx, "take", true)}
	}
	e.takers = slices.Delete(e.takers, i, i+1)
	leads := len(t.lead) > 0
	e.mu.Unlock()
	if leads {
		e.pass()
	}
	return taken{err: e.ended(ctx, "take", false)}
}

// pass gives the baton to the first of those who wait.
func (e *engine) pass() {
	e.mu.Lock()
	if len(e.takers) > 0 {
		e.takers[0].lead <- struct{}{}
		e.mu.Unlock()
		return
	}
	place := e.consumer.leaveLine()
	e.baton = false
	e.mu.Unlock()
	if place != "" {
		e.drop(place)
	}
}

// drop deletes a znode in the background.
func (e *engine) drop(path string) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.client.DeleteGuaranteed(ended, path) // not waited for: it goes on until it is done
}

// leadOn finds something to take for those who wait, as many as there are, and has it taken in the background. By whoever has the baton.
func (e *engine) leadOn(ctx context.Context, t *taker) {
	found, err := e.find(ctx, t)
	if err != nil && ctx.Err() == nil {
		e.serve(t, taken{err: err})
	}
	if len(found) == 0 {
		e.pass()
		return
	}
	err = e.client.Background(ctx, func(ctx context.Context) {
		e.claim(ctx, found)
		e.pass()
	})
	if err != nil {
		for _, p := range found {
			e.serve(p.taker, taken{err: err})
		}
		e.pass()
	}
}

// serve gives a taker what it waits for. By whoever has the baton. False if nobody waits any more.
func (e *engine) serve(t *taker, r taken) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.takers, t); i >= 0 {
		e.takers = slices.Delete(e.takers, i, i+1)
	}
	if t.gone {
		return false
	}
	t.served = true
	t.got <- r
	return true
}

// again lets takers for whom nothing was taken wait again, before all others.
func (e *engine) again(found []pair) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var back []*taker
	for _, p := range found {
		if !p.taker.gone && !p.taker.served {
			back = append(back, p.taker)
		}
	}
	e.takers = append(back, e.takers...)
}

// pair is an item and for whom it is taken.
type pair struct {
	*entry
	taker *taker
}

// assign gives each of the items to one who waits, in order. Who came after last did so when the server may have been asked already, and
// might miss what was put in between.
func (e *engine) assign(picks []*entry, last int) []pair {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []pair
	for _, x := range picks {
		if len(e.takers) == 0 || e.takers[0].number > last {
			break
		}
		found = append(found, pair{x, e.takers[0]})
		e.takers = slices.Delete(e.takers, 0, 1)
	}
	return found
}

// instead returns another who waits for such an item, and takes him out of the line.
func (e *engine) instead(t *taker) *taker {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.takers, func(other *taker) bool { return other.locked == t.locked })
	if i < 0 {
		return nil
	}
	other := e.takers[i]
	e.takers = slices.Delete(e.takers, i, i+1)
	return other
}
