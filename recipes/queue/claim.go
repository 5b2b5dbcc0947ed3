package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// claim takes the items of found in one request and delivers them to their requests. An item whose
// request was abandoned goes to another request, or back into the queue. Only the leader calls
// claim.
func (e *engine) claim(ctx context.Context, found []assignment) {
	c := &e.consumer
	var wg sync.WaitGroup
	if ahead := c.readAhead(found); len(ahead) > 0 {
		// Ends with its answer; awaited below. What cannot be read ahead is read when needed.
		wg.Go(func() { _ = e.fetch(ctx, ahead) })
	}
	defer wg.Wait()
	ops, owners := e.claimOps(found)
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		e.answerAll(found, takeResult{err: err})
		return
	}
	in, cancel := s.Within(ctx)
	r, err := e.write(in, c.writer, ops...)
	cancel()
	wg.Wait() // the read-ahead uses the list that changes now
	switch {
	case err == nil && r.Session == nil && slices.ContainsFunc(found, func(p assignment) bool { return p.request.locked }):
		c.available, c.listedAt = nil, time.Time{}
		var locked []assignment // locked in a session later than s, so nobody holds these items
		for _, p := range found {
			if p.request.locked {
				locked = append(locked, p)
				continue
			}
			e.deliver(ctx, p, r)
		}
		e.resolveClaim(ctx, s, locked, &recipes.Error{Op: "take", Path: e.path, Err: recipes.ErrSessionLost, Unknown: true})
	case err == nil:
		c.batchSize, c.misses = min(2*c.batchSize, maxClaim), 0
		if c.linePath != "" {
			c.linePath, c.firstInLine = "", false
		}
		for _, p := range found {
			c.remove(p.entry)
		}
		for _, p := range found {
			e.deliver(ctx, p, r)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		c.available, c.listedAt = nil, time.Time{}
		e.resolveClaim(ctx, s, found, err)
	case s.Context().Err() != nil && ctx.Err() == nil:
		e.requeue(found) // nothing was taken; the next session may succeed
	default:
		e.claimRefused(found, owners, r.Ops, err)
	}
}

// readAhead returns up to len(found) entries that will be taken next and have not been read.
func (c *consumer) readAhead(found []assignment) []*entry {
	var ahead []*entry
	now := time.Now().UnixMilli()
	for _, x := range c.available {
		if len(ahead) == len(found) || x.due > now {
			break
		}
		isFound := func(p assignment) bool { return p.entry == x }
		if x.stat == nil && !slices.ContainsFunc(found, isFound) {
			ahead = append(ahead, x)
		}
	}
	return ahead
}

// claimOps returns the operations that take the items of found, and for each operation the index of
// its item: len(found) for the place in line.
func (e *engine) claimOps(found []assignment) (ops []client.Op, owners []int) {
	for i, p := range found {
		if p.request.locked {
			ops = append(ops,
				client.CreateOp(e.lock(p.name), []byte(e.id), client.CreateOptions{Ephemeral: true}),
				client.CheckOp(e.child(p.name), p.stat.Version))
		} else {
			ops = append(ops, e.removeOps(p.name, p.stat.Version)...)
		}
		for len(owners) < len(ops) {
			owners = append(owners, i)
		}
	}
	if place := e.consumer.linePath; place != "" {
		ops, owners = append(ops, client.DeleteOp(place, -1)), append(owners, len(found))
	}
	return ops, owners
}

// claimRefused handles a claim that the server refused with err, or that was not sent.
func (e *engine) claimRefused(found []assignment, owners []int, results []client.Result, err error) {
	c := &e.consumer
	failed := exactlyonce.FailedAt(results)
	owner := len(found)
	if failed < len(owners) {
		owner = owners[failed]
	}
	switch {
	case len(results) == 0: // not sent, or too large
		e.answerAll(found, takeResult{err: err})
	// somebody has deleted this consumer's place in line
	case owner == len(found) && errors.Is(err, proto.ErrNoNode):
		c.linePath, c.firstInLine = "", false
		e.requeue(found)
	case owner == len(found):
		e.answerAll(found, takeResult{err: err})
	case errors.Is(err, proto.ErrNotEmpty):
		e.skip(found[owner].entry, err)
		e.requeue(found)
	case errors.Is(err, proto.ErrNoNode), errors.Is(err, proto.ErrNodeExists): // somebody else has the item
		c.remove(found[owner].entry)
		c.misses++
		c.batchSize = max(1, c.batchSize/2)
		e.requeue(found)
	case errors.Is(err, proto.ErrBadVersion):
		found[owner].stat = nil
		e.requeue(found)
	default:
		e.answer(found[owner].request, takeResult{err: err})
		e.requeue(found)
	}
}

func (e *engine) answerAll(found []assignment, r takeResult) {
	for _, p := range found {
		e.answer(p.request, r)
	}
}

// deliver gives an item that was taken to its request. If the request was abandoned, the item goes
// to another request, or back into the queue.
func (e *engine) deliver(ctx context.Context, p assignment, r exactlyonce.Result) {
	result := e.resultOf(p.entry, p.request, r)
	for t := p.request; t != nil; t = e.nextTake(p.request) {
		if e.answer(t, result) {
			return
		}
	}
	if p.request.locked {
		result.item.Hold.End()
		_ = e.unlock(ctx, r.Session, p.name, r.Marker, r.Zxid) // nobody waits for the result
		return
	}
	e.putBack(ctx, p.entry)
}

func (e *engine) resultOf(x *entry, t *takeRequest, r exactlyonce.Result) takeResult {
	m := Message{Name: x.name, Data: x.data, Put: time.UnixMilli(x.stat.CtimeMs)}
	if e.layout == plainLayout {
		m.ID = curatorID(x.name)
	}
	var err error
	if e.layout.framed {
		var items [][]byte
		if items, err = unframe(x.data); err == nil {
			m.Data = nil
		}
		if len(items) > 0 {
			m.Data, m.More = items[0], items[1:]
		}
	}
	i := &Item{Message: m}
	if t.locked {
		i.engine, i.marker, i.turn = e, r.Marker, make(chan struct{}, 1)
		i.turn <- struct{}{}
		// The name of the lock does not tell whose it is: the next holder's is the same.
		marked := client.CheckOp(r.Marker, -1)
		i.Hold = e.client.NewHold(recipes.HoldSpec{Session: r.Session, Path: e.lock(x.name), Token: r.Zxid, Checks: []client.Op{marked}, Release: i.giveBack})
		e.trackHeld(i.Hold)
	}
	return takeResult{i, err}
}

// putBack creates the znode of a taken item again. Its name is its place in the queue.
func (e *engine) putBack(ctx context.Context, x *entry) {
	put := client.CreateOp(e.child(x.name), x.data, client.CreateOptions{})
	for {
		if _, err := e.write(ctx, e.consumer.writer, put); err == nil || !repeatable(ctx, err) {
			return
		}
		backoff.Sleep(ctx, dropPause)
	}
}

// resolveClaim finds out what became of a claim in session s whose answer was lost. An item that
// still exists was not taken, and after the sync never will be. A lock was deleted with s, or was
// created by a request that was sent in a later session, where nobody holds that lock; resolveClaim
// deletes such a lock.
func (e *engine) resolveClaim(ctx context.Context, s *recipes.Session, found []assignment, unknown error) {
	alive := s.Context().Err() == nil
	_, err := e.client.AwaitSession(ctx)
	if err == nil {
		err = e.client.Sync(ctx, e.path)
	}
	var retry, drop []assignment
	for _, p := range found {
		if p.request.locked {
			if err != nil || alive {
				e.answer(p.request, takeResult{err: unknown})
				drop = append(drop, p)
				continue
			}
			retry = append(retry, p)
			if stat, lookErr := e.client.Exists(ctx, e.lock(p.name)); stat != nil || lookErr != nil {
				drop = append(drop, p)
			}
			continue
		}
		there := false
		if err == nil {
			var stat *proto.Stat
			stat, err = e.client.Exists(ctx, e.child(p.name))
			there = stat != nil
		}
		if there && err == nil {
			retry = append(retry, p)
			continue
		}
		result := e.resultOf(p.entry, &takeRequest{}, exactlyonce.Result{})
		result.err = unknown
		e.answer(p.request, result)
	}
	for _, p := range drop { // before a request of this process locks them again
		if now, err := e.client.AwaitSession(ctx); err == nil {
			e.dropLock(ctx, now, p.name)
		}
	}
	e.requeue(retry)
}
