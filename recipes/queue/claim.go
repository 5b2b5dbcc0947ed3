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
func (e *engine) claim(ctx context.Context, found []pair) {
	c := &e.consumer
	var wg sync.WaitGroup
	if ahead := c.ahead(found); len(ahead) > 0 {
		// Ends with its answer; awaited below. What could not be read is read again when it is needed.
		wg.Go(func() { _ = e.get(ctx, ahead) })
	}
	defer wg.Wait()
	ops, owners := e.claimOps(found)
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		e.serveAll(found, taken{err: err})
		return
	}
	in, cancel := s.Within(ctx)
	r, err := c.writer.Write(in, ops...)
	cancel()
	switch {
	case err == nil && r.Session == nil && slices.ContainsFunc(found, func(p pair) bool { return p.taker.locked }):
		wg.Wait()
		c.list, c.listed = nil, time.Time{}
		var locked []pair // in a later session than s: nobody holds them
		for _, p := range found {
			if p.taker.locked {
				locked = append(locked, p)
				continue
			}
			e.give(ctx, p, r)
		}
		e.resolve(ctx, s, locked, &recipes.Error{Op: "take", Path: e.path, Err: recipes.ErrSessionLost, Unknown: true})
	case err == nil:
		c.batch, c.missed = min(2*c.batch, mostTaken), 0
		if c.place != "" {
			c.place, c.first = "", false
		}
		wg.Wait() // before the list changes
		for _, p := range found {
			c.strike(p.entry)
		}
		for _, p := range found {
			e.give(ctx, p, r)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		wg.Wait()
		c.list, c.listed = nil, time.Time{}
		e.resolve(ctx, s, found, err)
	case s.Context().Err() != nil && ctx.Err() == nil:
		e.again(found) // nothing was taken: the next session may do
	default:
		wg.Wait()
		e.refused(ctx, found, owners, ops, r.Ops, err)
	}
}

// ahead returns as many items as there are in found, which are the next that may be asked for, and have not been read.
func (c *consumer) ahead(found []pair) []*entry {
	var ahead []*entry
	now := time.Now().UnixMilli()
	for _, x := range c.list {
		if len(ahead) == len(found) || x.due > now {
			break
		}
		isFound := false
		for _, p := range found {
			isFound = isFound || p.entry == x
		}
		if !isFound && x.item == nil {
			ahead = append(ahead, x)
		}
	}
	return ahead
}

// claimOps returns what takes all of them, and for each operation the index of the item that it is for: that of none for the place in line.
func (e *engine) claimOps(found []pair) (ops []any, owners []int) {
	for i, p := range found {
		if p.taker.locked {
			ops = append(ops,
				&zk.CreateRequest{Path: e.lock(p.name), Data: []byte(e.id), Flags: zk.FlagEphemeral},
				&zk.CheckVersionRequest{Path: e.child(p.name), Version: p.item.stat.Version})
		} else {
			ops = append(ops, e.remove(p.name, p.item.stat.Version)...)
		}
		for len(owners) < len(ops) {
			owners = append(owners, i)
		}
	}
	if place := e.consumer.place; place != "" {
		ops, owners = append(ops, &zk.DeleteRequest{Path: place, Version: -1}), append(owners, len(found))
	}
	return ops, owners
}

// refused sees to what the server did not do, because of err.
func (e *engine) refused(ctx context.Context, found []pair, owners []int, ops []any, results []zk.MultiResponse, err error) {
	c := &e.consumer
	failed := failedAt(results)
	owner, creates := len(found), true
	if failed < len(ops) {
		owner = owners[failed]
		_, creates = ops[failed].(*zk.CreateRequest)
	}
	switch {
	case len(results) == 0: // it was not sent, or is too large
		e.serveAll(found, taken{err: err})
	case creates && errors.Is(err, zk.ErrNoNode):
		if err := e.makePaths(ctx); err != nil {
			e.serveAll(found, taken{err: err})
			return
		}
		e.again(found)
	case owner == len(found) && errors.Is(err, zk.ErrNoNode): // somebody has deleted our place
		c.place, c.first = "", false
		e.again(found)
	case owner == len(found):
		e.serveAll(found, taken{err: err})
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNotEmpty):
		// Somebody else has it, or has made it something that can't be taken.
		c.strike(found[owner].entry)
		c.missed++
		c.batch = max(1, c.batch/2)
		e.again(found)
	case errors.Is(err, zk.ErrBadVersion):
		found[owner].item = nil
		e.again(found)
	default:
		e.serve(found[owner].taker, taken{err: err})
		e.again(found)
	}
}

func (e *engine) serveAll(found []pair, r taken) {
	for _, p := range found {
		e.serve(p.taker, r)
	}
}

// give gives what was taken to the one for whom it was, or else to another, or back.
func (e *engine) give(ctx context.Context, p pair, r exactlyonce.Result) {
	result := e.result(p.entry, p.taker, r)
	for t := p.taker; t != nil; t = e.instead(p.taker) {
		if e.serve(t, result) {
			return
		}
	}
	if p.taker.locked {
		result.item.held.End()
		_ = e.unlock(ctx, r.Session, p.name, r.Marker) // nobody waits to hear of it
		return
	}
	e.putBack(ctx, p.entry)
}

// result is what a taker gets.
func (e *engine) result(x *entry, t *taker, r exactlyonce.Result) taken {
	m := Message{Name: x.name, Data: x.item.data, Put: time.UnixMilli(x.item.stat.Ctime)}
	var err error
	if e.layout.framed {
		var items [][]byte
		if items, err = unframe(x.item.data); err == nil {
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
		e.hold(i.held)
	}
	return taken{i, err}
}

// putBack makes the znode of an item again that was taken for nobody: its name is its place in the queue.
func (e *engine) putBack(ctx context.Context, x *entry) {
	for tries := 1; tries <= pathTries; tries++ {
		s, err := e.client.AwaitSession(ctx)
		if err != nil {
			return
		}
		in, cancel := s.Within(ctx)
		_, err = e.consumer.writer.Write(in, &zk.CreateRequest{Path: e.child(x.name), Data: x.item.data})
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
func (e *engine) resolve(ctx context.Context, s *recipes.Session, found []pair, unknown error) {
	alive := s.Context().Err() == nil
	_, err := e.client.AwaitSession(ctx)
	if err == nil {
		err = e.client.Sync(ctx, e.path)
	}
	var retry, drop []pair
	for _, p := range found {
		if p.taker.locked {
			if err != nil || alive {
				e.serve(p.taker, taken{err: unknown})
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
		result := e.result(p.entry, &taker{}, exactlyonce.Result{})
		result.err = unknown
		e.serve(p.taker, result)
	}
	for _, p := range drop { // before anybody here locks the same again
		if now, err := e.client.AwaitSession(ctx); err == nil {
			e.dropLock(ctx, now, p.name)
		}
	}
	e.again(retry)
}
