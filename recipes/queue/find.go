package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// consumer is the state that the callers of Take share. Owned by the leader.
type consumer struct {
	writer *exactlyonce.Writer

	available    []*entry  // the listed items that can be taken, without those taken since
	listedAt     time.Time // zero if the queue must be listed again
	creationMark int64     // of the queue when it was listed
	batchSize    int       // most items to claim at once; halved when others claim the same
	misses       int       // items that others had taken, since the last success
	// skipped holds the items that cannot be taken, because this client may not read them or they
	// have children, with the reasons. Tried again recheckInterval after skippedSince. Changed with
	// engine.mu held.
	skipped      map[string]error
	skippedSince time.Time

	session     *recipes.Session // owns the fields below
	role        waitRole
	linePath    string // the consumer's znode in line; "" if none
	firstInLine bool   // no other znode is before linePath
}

const (
	// listLife is how long a listing is used. A listing does not show items that others have
	// unlocked or put back since.
	listLife = time.Second
	// maxClaim is the greatest number of items that a request takes, and firstClaim the number for
	// the first request.
	maxClaim, firstClaim = 64, 16
	// maxMisses is after how many items taken by others the queue is listed again.
	maxMisses = 16
)

// findItems waits until items can be taken, and returns them assigned to requests. The result is
// empty if t was answered or no request is left. When the queue has no item to take, findItems
// answers the requests of Try methods.
func (e *engine) findItems(ctx context.Context, t *takeRequest) ([]assignment, error) {
	c := &e.consumer
	listedFor := 0 // number of the latest request when the queue was listed
	for justListed := false; !t.answered; {
		wanted, anyTry, last := e.demand()
		if wanted == 0 {
			return nil, nil
		}
		if time.Since(c.listedAt) > listLife || c.misses > maxMisses {
			c.available, c.listedAt = nil, time.Time{}
		}
		picks := c.takeable(min(wanted, c.batchSize), time.Now())
		switch {
		case len(picks) > 0:
			picks, err := e.readPicks(ctx, picks, justListed)
			if err != nil {
				return nil, err
			}
			if found := e.assign(picks, last); len(found) > 0 {
				return found, nil
			}
		case !justListed && (anyTry || c.role != roleChief && !c.firstInLine): // the next wait is for a place in line
			if _, err := e.refresh(ctx, false); err != nil {
				return nil, err
			}
			justListed, listedFor = true, last
		case justListed && anyTry:
			justListed = e.answerEmpty(listedFor)
		default:
			if err := e.await(ctx); err != nil {
				return nil, err
			}
			justListed, listedFor = len(c.available) > 0, 0
		}
	}
	return nil, nil
}

// demand returns how many requests wait, whether any is of a Try method, and the latest's number.
func (e *engine) demand() (n int, anyTry bool, last int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	anyTry = slices.ContainsFunc(e.waitingTakes, func(t *takeRequest) bool { return t.try })
	return len(e.waitingTakes), anyTry, e.lastNumber
}

// answerEmpty tells the Try methods up to number last that there is no item; false: there are none.
func (e *engine) answerEmpty(last int) bool {
	e.mu.Lock()
	none := slices.DeleteFunc(slices.Clone(e.waitingTakes), func(t *takeRequest) bool { return !t.try || t.number > last })
	e.mu.Unlock()
	for _, t := range none {
		e.answer(t, takeResult{})
	}
	return len(none) > 0
}

func (c *consumer) takeable(n int, now time.Time) []*entry {
	for i, x := range c.available {
		if i == n || x.due > now.UnixMilli() { // the list is sorted by due time, if items have one
			return c.available[:i]
		}
	}
	return c.available
}

// skip passes over an item that cannot be taken for now.
func (e *engine) skip(x *entry, why error) {
	c := &e.consumer
	c.remove(x)
	e.mu.Lock()
	if c.skipped == nil {
		c.skipped, c.skippedSince = make(map[string]error), time.Now()
	}
	c.skipped[x.name] = why
	e.mu.Unlock()
	e.client.Logger().Warn(fmt.Sprintf("queue %s: item %s cannot be taken and is passed over: %v; "+
		"delete its children, or grant READ and DELETE", e.path, x.name, why))
}

func (c *consumer) remove(x *entry) {
	if i := slices.Index(c.available, x); i == 0 {
		c.available = c.available[1:]
	} else if i > 0 {
		c.available = slices.Delete(c.available, i, i+1)
	}
}

// refresh lists the queue. With watch, the channels fire when the items or the locks change.
func (e *engine) refresh(ctx context.Context, watch bool) (watches []<-chan client.Event, err error) {
	c := &e.consumer
	for tries := 1; ; tries++ {
		items, locks, err := e.listBoth(ctx, watch)
		// a missing znode's children cannot be watched
		if errors.Is(err, proto.ErrNoNode) && watch && tries < maxPathTries {
			if err := e.makePaths(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, proto.ErrNoNode) {
			items, locks, err = listing{stat: &proto.Stat{}}, listing{}, nil
		}
		if err != nil {
			return nil, err
		}
		c.available, c.listedAt, c.misses = e.layout.sorted(items.names), time.Now(), 0
		c.creationMark = creationMark(items.stat)
		e.mu.Lock()
		if time.Since(c.skippedSince) > recheckInterval {
			c.skipped = nil
		}
		e.mu.Unlock()
		slices.Sort(locks.names)
		c.available = slices.DeleteFunc(c.available, func(x *entry) bool {
			_, locked := slices.BinarySearch(locks.names, x.name)
			_, skipped := c.skipped[x.name]
			return locked || skipped
		})
		return []<-chan client.Event{items.watch, locks.watch}, nil
	}
}

// creationMark returns a number that rises when a child is created and does not change when a child
// is deleted: twice the number of children ever created.
func creationMark(stat *proto.Stat) int64 { return int64(stat.Cversion) + int64(stat.NumChildren) }

type listing struct {
	names []string
	stat  *proto.Stat
	watch <-chan client.Event
}

func (e *engine) listBoth(ctx context.Context, watch bool) (items, locks listing, err error) {
	list := func(path string) (l listing, err error) {
		if watch {
			l.names, l.stat, l.watch, err = e.client.ChildrenW(ctx, path)
		} else {
			l.names, l.stat, err = e.client.Children(ctx, path)
		}
		return l, err
	}
	var (
		wg       sync.WaitGroup
		locksErr error
	)
	if e.locks != "" {
		// Ends with its answer; awaited below.
		wg.Go(func() { locks, locksErr = list(e.locks) })
	}
	items, err = list(e.path)
	wg.Wait()
	return items, locks, cmp.Or(err, locksErr)
}

// readPicks reads those of picks that were not read ahead, and returns those that exist. Unless the
// queue was listed just now, readPicks also checks whether an item was put that sorts before them;
// if so, the result is empty and the queue will be listed again.
func (e *engine) readPicks(ctx context.Context, picks []*entry, justListed bool) ([]*entry, error) {
	c := &e.consumer
	n := len(picks)
	if c.misses > 0 && len(c.available) > n { // a consumer that lags behind others skips ahead
		picks = c.takeable(min(n+2*c.misses, maxMisses), time.Now())
	}
	picks = append([]*entry(nil), picks...)
	var (
		wg      sync.WaitGroup
		stat    *proto.Stat
		statErr error
	)
	if e.layout.sortKey != nil && !justListed {
		// Ends with its answer; awaited below.
		wg.Go(func() { stat, statErr = e.client.Exists(ctx, e.path) })
	}
	err := e.fetch(ctx, picks)
	wg.Wait()
	switch {
	case err != nil:
		return nil, err
	case statErr != nil:
		return nil, statErr
	case e.layout.sortKey != nil && !justListed && (stat == nil || creationMark(stat) != c.creationMark):
		c.available, c.listedAt = nil, time.Time{}
		return nil, nil
	}
	there := picks[:0]
	for _, x := range picks {
		switch {
		case x.stat != nil:
			there = append(there, x)
		case x.forbidden != nil:
			e.skip(x, x.forbidden)
		default:
			c.remove(x)
			c.misses++
		}
	}
	return there[:min(n, len(there))], nil
}

// fetch concurrently reads the entries that were not read. Entries that are gone stay unread.
// Entries that may not be read are marked.
func (e *engine) fetch(ctx context.Context, entries []*entry) error {
	missing := slices.DeleteFunc(slices.Clone(entries), func(x *entry) bool { return x.stat != nil })
	return calls.Each(len(missing), func(i int) error {
		x := missing[i]
		data, stat, err := e.client.Get(ctx, e.child(x.name))
		switch {
		case err == nil:
			x.data, x.stat = data, stat
		case errors.Is(err, proto.ErrNoAuth):
			x.forbidden = err
		case !errors.Is(err, proto.ErrNoNode):
			return err
		}
		return nil
	})
}
