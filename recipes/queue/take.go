package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
)

type takeRequest struct {
	locked       bool            // take with a lock
	try          bool            // do not wait for an item
	result       chan takeResult // capacity 1: the sender must not block
	becomeLeader chan struct{}   // capacity 1; tells the caller to lead
	number       int             // in order of arrival
	answered     bool            // result was sent; owned by the leader
	abandoned    bool            // the caller has returned; guarded by engine.mu
}

type takeResult struct {
	item *Item
	err  error
}

// Take waits for an item and removes it from the queue. The item is lost if the process dies before
// handling the item; TakeLocked avoids that.
//
// When ctx ends, Take returns at once. An item that is just being taken for this call goes to
// another waiting call of this Client, or back to its place in the queue. The error's Unknown is
// set then, because that return can fail if the session ends. Items that this Client may not read,
// or that have children, are passed over; the error then names one. With an
// error nothing was taken, except:
//
//   - recipes.ErrOutcomeUnknown and a Message with a Name: the answer was lost, and so was the
//     session, or the Client's RetryPolicy stopped. As far as could be seen, the item is gone from
//     the queue: either another consumer has the item, or only this caller.
//   - recipes.ErrFormat: the item was taken, and Data holds the znode's data.
func (e *engine) Take(ctx context.Context) (Message, error) {
	r := e.take(ctx, &takeRequest{})
	return r.message(), r.err
}

// TryTake is Take without waiting. The result is false if nothing can be taken now, as far as the
// Client's server knows.
func (e *engine) TryTake(ctx context.Context) (Message, bool, error) {
	r := e.take(ctx, &takeRequest{try: true})
	return r.message(), r.item != nil && r.err == nil, r.err
}

// TakeLocked waits for an item and locks the item, which stays in the queue until Done, and becomes
// available to others when the session ends. With recipes.ErrFormat, the Item is returned as well.
// When ctx ends, no item is locked, but Unknown may be set while a lock is being deleted.
func (e *engine) TakeLocked(ctx context.Context) (*Item, error) {
	r := e.take(ctx, &takeRequest{locked: true})
	return r.item, r.err
}

var errNoLocks = fmt.Errorf("queue: %w: items cannot be locked without the option Locks", recipes.ErrArgument)

// TryTakeLocked is TakeLocked without waiting. The Item is nil if nothing can be locked now.
func (e *engine) TryTakeLocked(ctx context.Context) (*Item, error) {
	r := e.take(ctx, &takeRequest{locked: true, try: true})
	return r.item, r.err
}

func (r takeResult) message() Message {
	if r.item == nil {
		return Message{}
	}
	return r.item.Message
}

// take waits until t is answered. One waiting caller is the leader and works for all of them, so
// that they share requests.
func (e *engine) take(ctx context.Context, t *takeRequest) takeResult {
	switch {
	case t.locked && e.locks == "":
		return takeResult{err: errNoLocks}
	case ctx.Err() != nil:
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
		wakeup.Send(e.wakeLeader)
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

func (e *engine) abandonTake(ctx context.Context, t *takeRequest) takeResult {
	e.mu.Lock()
	select {
	case r := <-t.result:
		e.mu.Unlock()
		return r
	default:
	}
	i := slices.Index(e.waitingTakes, t)
	if i < 0 { // an item is being taken for t
		t.abandoned = true
		e.mu.Unlock()
		return takeResult{err: e.contextError(ctx, "take", true)}
	}
	e.waitingTakes = slices.Delete(e.waitingTakes, i, i+1)
	leads := len(t.becomeLeader) > 0
	err := calls.ContextError(ctx)
	if skipped := e.consumer.skipped; len(skipped) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(skipped)))
		err = fmt.Errorf("%w; %d items cannot be taken and are passed over, such as %s: %w", err, len(skipped), e.child(first), skipped[first])
	}
	e.mu.Unlock()
	if leads {
		e.passLeadership()
	}
	return takeResult{err: &recipes.Error{Op: "take", Path: e.path, Err: err}}
}

// passLeadership makes the first waiting caller the leader. If no caller waits, there is no leader
// until the next call of Take.
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

func (e *engine) deleteInBackground(path string) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.client.DeleteGuaranteed(ended, path) // continues in the background
}

// lead finds items for the waiting requests and claims them in the background, which also passes
// leadership on.
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
		e.answerAll(found, takeResult{err: err})
		e.passLeadership()
	}
}

// answer sends a request its result, or returns false if the request was abandoned. Only the leader
// calls answer.
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

// requeue puts requests for which nothing was taken back in front of all others.
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

type assignment struct {
	*entry
	request *takeRequest
}

// assign assigns items to waiting requests, in order. Requests after number last are skipped: they
// may have arrived after the queue was read, and could miss an item that was put in between.
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

// nextTake removes and returns another request that takes as t does: with or without a lock.
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
