package queue

import (
	"context"
	"slices"
)

// taker is one Take under way.
type takeRequest struct {
	locked       bool            // takes with a lock
	try          bool            // does not wait for an item
	result       chan takeResult // capacity 1: who serves does not wait
	becomeLeader chan struct{}   // capacity 1: the baton
	number       int             // in the order in which they came
	answered     bool            // got has something; belongs to who has the baton
	abandoned    bool            // nobody waits any more; guarded by engine.mu
}

// taken is what a taker gets: an item, nothing, or an error.
type takeResult struct {
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
	r := e.take(ctx, &takeRequest{})
	return r.message(), r.err
}

// TryTake is Take that does not wait: false means that nothing can be taken now, as far as the server knows that the Client is connected to.
func (e *engine) TryTake(ctx context.Context) (Message, bool, error) {
	r := e.take(ctx, &takeRequest{try: true})
	return r.message(), r.item != nil && r.err == nil, r.err
}

// TakeLocked waits for an item and locks it: it stays in the queue, and comes back if the taker dies, until Done. With ErrFrame there is an
// Item too. When ctx ends, nothing is taken, though the error's Unknown may be set while the lock is being let go.
func (e *engine) TakeLocked(ctx context.Context) (*Item, error) {
	if e.locks == "" {
		return nil, ErrNoLocks
	}
	r := e.take(ctx, &takeRequest{locked: true})
	return r.item, r.err
}

// TryTakeLocked is TakeLocked that does not wait. Without an item it returns nil.
func (e *engine) TryTakeLocked(ctx context.Context) (*Item, error) {
	if e.locks == "" {
		return nil, ErrNoLocks
	}
	r := e.take(ctx, &takeRequest{locked: true, try: true})
	return r.item, r.err
}

func (r takeResult) message() Message {
	if r.item == nil {
		return Message{}
	}
	return r.item.Message
}

// take waits until t has been served. One of those who wait has the baton and sees to all of them: what they ask of the server is asked once.
func (e *engine) take(ctx context.Context, t *takeRequest) takeResult {
	if ctx.Err() != nil {
		return takeResult{err: e.contextError(ctx, "take", false)}
	}
	t.result, t.becomeLeader = make(chan takeResult, 1), make(chan struct{}, 1)
	e.mu.Lock()
	e.lastNumber++
	t.number = e.lastNumber
	e.waitingTakes = append(e.waitingTakes, t)
	switch {
	case !e.hasLeader:
		e.hasLeader = true
		t.becomeLeader <- struct{}{}
	case t.try:
		select {
		case e.wakeLeader <- struct{}{}:
		default:
		}
	}
	e.mu.Unlock()
	for {
		select {
		case r := <-t.result:
			return r
		case <-t.becomeLeader:
			e.lead(ctx, t)
		case <-ctx.Done():
			return e.abandonTake(ctx, t)
		}
	}
}

// leave is for who does not wait any more.
func (e *engine) abandonTake(ctx context.Context, t *takeRequest) takeResult {
	e.mu.Lock()
	select {
	case r := <-t.result:
		e.mu.Unlock()
		return r
	default:
	}
	i := slices.Index(e.waitingTakes, t)
	if i < 0 { // an item is being taken for it
		t.abandoned = true
		e.mu.Unlock()
		return takeResult{err: e.contextError(ctx, "take", true)}
	}
	e.waitingTakes = slices.Delete(e.waitingTakes, i, i+1)
	leads := len(t.becomeLeader) > 0
	e.mu.Unlock()
	if leads {
		e.passLeadership()
	}
	return takeResult{err: e.contextError(ctx, "take", false)}
}

// pass gives the baton to the first of those who wait.
func (e *engine) passLeadership() {
	e.mu.Lock()
	if len(e.waitingTakes) > 0 {
		e.waitingTakes[0].becomeLeader <- struct{}{}
		e.mu.Unlock()
		return
	}
	place := e.consumer.leaveLine()
	e.hasLeader = false
	e.mu.Unlock()
	if place != "" {
		e.deleteInBackground(place)
	}
}

// drop deletes a znode in the background.
func (e *engine) deleteInBackground(path string) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.client.DeleteGuaranteed(ended, path) // not waited for: it goes on until it is done
}

// leadOn finds something to take for those who wait, as many as there are, and has it taken in the background. By whoever has the baton.
func (e *engine) lead(ctx context.Context, t *takeRequest) {
	found, err := e.findItems(ctx, t)
	if err != nil && ctx.Err() == nil {
		e.answer(t, takeResult{err: err})
	}
	if len(found) == 0 {
		e.passLeadership()
		return
	}
	err = e.client.Background(ctx, func(ctx context.Context) {
		e.claim(ctx, found)
		e.passLeadership()
	})
	if err != nil {
		for _, p := range found {
			e.answer(p.request, takeResult{err: err})
		}
		e.passLeadership()
	}
}

// serve gives a taker what it waits for. By whoever has the baton. False if nobody waits any more.
func (e *engine) answer(t *takeRequest, r takeResult) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.waitingTakes, t); i >= 0 {
		e.waitingTakes = slices.Delete(e.waitingTakes, i, i+1)
	}
	if t.abandoned {
		return false
	}
	t.answered = true
	t.result <- r
	return true
}

// again lets takers for whom nothing was taken wait again, before all others.
func (e *engine) requeue(found []assignment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var back []*takeRequest
	for _, p := range found {
		if !p.request.abandoned && !p.request.answered {
			back = append(back, p.request)
		}
	}
	e.waitingTakes = append(back, e.waitingTakes...)
}

// pair is an item and for whom it is taken.
type assignment struct {
	*entry
	request *takeRequest
}

// assign gives each of the items to one who waits, in order. Who came after last did so when the server may have been asked already, and
// might miss what was put in between.
func (e *engine) assign(picks []*entry, last int) []assignment {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []assignment
	for _, x := range picks {
		if len(e.waitingTakes) == 0 || e.waitingTakes[0].number > last {
			break
		}
		found = append(found, assignment{x, e.waitingTakes[0]})
		e.waitingTakes = slices.Delete(e.waitingTakes, 0, 1)
	}
	return found
}

// instead returns another who waits for such an item, and takes him out of the line.
func (e *engine) nextTake(t *takeRequest) *takeRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.waitingTakes, func(other *takeRequest) bool { return other.locked == t.locked })
	if i < 0 {
		return nil
	}
	other := e.waitingTakes[i]
	e.waitingTakes = slices.Delete(e.waitingTakes, i, i+1)
	return other
}
