package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// claim takes what was found, all with one request, and gives it to those for whom it was taken. What nobody waits for any more goes to
// another who waits, or back. By whoever has the baton.
func (e *engine) claim(ctx context.Context, found []assignment) {
	c := &e.consumer
	var wg sync.WaitGroup
	if ahead := c.readAhead(found); len(ahead) > 0 {
		// Ends with its answer; awaited below. What could not be read is read again when it is needed.
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
	r, err := c.writer.Write(in, ops...)
	cancel()
	switch {
	case err == nil && r.Session == nil && slices.ContainsFunc(found, func(p assignment) bool { return p.request.locked }):
		wg.Wait()
		c.available, c.listedAt = nil, time.Time{}
		var locked []assignment // in a later session than s: nobody holds them
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
		wg.Wait() // before the list changes
		for _, p := range found {
			c.remove(p.entry)
		}
		for _, p := range found {
			e.deliver(ctx, p, r)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		wg.Wait()
		c.available, c.listedAt = nil, time.Time{}
		e.resolveClaim(ctx, s, found, err)
	case s.Context().Err() != nil && ctx.Err() == nil:
		e.requeue(found) // nothing was taken: the next session may do
	default:
		wg.Wait()
		e.claimRefused(ctx, found, owners, ops, r.Ops, err)
	}
}

// ahead returns as many items as there are in found, which are the next that may be asked for, and have not been read.
func (c *consumer) readAhead(found []assignment) []*entry {
	var ahead []*entry
	now := time.Now().UnixMilli()
	for _, x := range c.available {
		if len(ahead) == len(found) || x.due > now {
			break
		}
		isFound := false
		for _, p := range found {
			isFound = isFound || p.entry == x
		}
		if !isFound && x.content == nil {
			ahead = append(ahead, x)
		}
	}
	return ahead
}

// claimOps returns what takes all of them, and for each operation the index of the item that it is for: that of none for the place in line.
func (e *engine) claimOps(found []assignment) (ops []any, owners []int) {
	for i, p := range found {
		if p.request.locked {
			ops = append(ops,
				&zk.CreateRequest{Path: e.lock(p.name), Data: []byte(e.id), Flags: zk.FlagEphemeral},
				&zk.CheckVersionRequest{Path: e.child(p.name), Version: p.content.stat.Version})
		} else {
			ops = append(ops, e.removeOps(p.name, p.content.stat.Version)...)
		}
		for len(owners) < len(ops) {
			owners = append(owners, i)
		}
	}
	if place := e.consumer.linePath; place != "" {
		ops, owners = append(ops, &zk.DeleteRequest{Path: place, Version: -1}), append(owners, len(found))
	}
	return ops, owners
}

// refused sees to what the server did not do, because of err.
func (e *engine) claimRefused(ctx context.Context, found []assignment, owners []int, ops []any, results []zk.MultiResponse, err error) {
	c := &e.consumer
	failed := exactlyonce.FailedAt(results)
	owner, creates := len(found), true
	if failed < len(ops) {
		owner = owners[failed]
		_, creates = ops[failed].(*zk.CreateRequest)
	}
	switch {
	case len(results) == 0: // it was not sent, or is too large
		e.answerAll(found, takeResult{err: err})
	case creates && errors.Is(err, zk.ErrNoNode):
		if err := e.makePaths(ctx); err != nil {
			e.answerAll(found, takeResult{err: err})
			return
		}
		e.requeue(found)
	case owner == len(found) && errors.Is(err, zk.ErrNoNode): // somebody has deleted our place
		c.linePath, c.firstInLine = "", false
		e.requeue(found)
	case owner == len(found):
		e.answerAll(found, takeResult{err: err})
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNotEmpty):
		// Somebody else has it, or has made it something that can't be taken.
		c.remove(found[owner].entry)
		c.misses++
		c.batchSize = max(1, c.batchSize/2)
		e.requeue(found)
	case errors.Is(err, zk.ErrBadVersion):
		found[owner].content = nil
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

// give gives what was taken to the one for whom it was, or else to another, or back.
func (e *engine) deliver(ctx context.Context, p assignment, r exactlyonce.Result) {
	result := e.resultOf(p.entry, p.request, r)
	for t := p.request; t != nil; t = e.nextTake(p.request) {
		if e.answer(t, result) {
			return
		}
	}
	if p.request.locked {
		result.item.held.End()
		_ = e.unlock(ctx, r.Session, p.name, r.Marker) // nobody waits to hear of it
		return
	}
	e.putBack(ctx, p.entry)
}

// result is what a taker gets.
func (e *engine) resultOf(x *entry, t *takeRequest, r exactlyonce.Result) takeResult {
	m := Message{Name: x.name, Data: x.content.data, Put: time.UnixMilli(x.content.stat.Ctime)}
	var err error
	if e.layout.framed {
		var items [][]byte
		if items, err = unframe(x.content.data); err == nil {
			m.Data = nil
		}
		if len(items) > 0 {
			m.Data, m.More = items[0], items[1:]
		}
	}
	i := &Item{Message: m}
	if t.locked {
		i.engine, i.marker = e, r.Marker
		i.held = e.client.Hold(r.Session, e.lock(x.name), r.Zxid)
		e.trackHeld(i.held)
	}
	return takeResult{i, err}
}

// putBack makes the znode of an item again that was taken for nobody: its name is its place in the queue.
func (e *engine) putBack(ctx context.Context, x *entry) {
	for tries := 1; tries <= maxPathTries; tries++ {
		s, err := e.client.AwaitSession(ctx)
		if err != nil {
			return
		}
		in, cancel := s.Within(ctx)
		_, err = e.consumer.writer.Write(in, &zk.CreateRequest{Path: e.child(x.name), Data: x.content.data})
		cancel()
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if e.makePaths(ctx) != nil {
				return
			}
		case err == nil, errors.Is(err, recipes.ErrOutcomeUnknown), s.Context().Err() == nil:
			return
		}
	}
}

// resolve finds out, as far as that can be, what came of a claim in s that the session's end left open, or a RetryPolicy that had enough. What is
// there was not taken, and after the sync never will be. A lock went with s, or was made by a claim that was sent in a later session, where nobody
// has it: then it is let go.
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
			var stat *zk.Stat
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
	for _, p := range drop { // before anybody here locks the same again
		if now, err := e.client.AwaitSession(ctx); err == nil {
			e.dropLock(ctx, now, p.name)
		}
	}
	e.requeue(retry)
}
