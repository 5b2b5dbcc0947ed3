package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// consumer is what those who take have in common. It belongs to who has the baton.
type consumer struct {
	writer *exactlyonce.Writer

	available    []*entry  // what was there and can be taken, but for what has been taken since
	listedAt     time.Time // zero: it is to be listed again
	creationMark int64     // twice as many items as were ever put, when it was listed
	batchSize    int       // how many are taken at a time at most: fewer when others take them too
	misses       int       // how many in a row somebody else had taken

	session     *recipes.Session // of what follows
	role        waitRole
	linePath    string // our znode in line
	firstInLine bool   // nobody is before it
}

// content is what an item's znode has.
type content struct {
	data []byte
	stat *zk.Stat
}

const (
	// listLife is for how long a listing is used. It does not show who has let go of an item since, or put it back.
	listLife = time.Second
	// mostTaken is how many items are taken with one request at most, firstTaken with the first.
	maxClaim, firstClaim = 64, 16
	// mostMissed is after how many items that somebody else had taken the queue is listed again.
	maxMisses = 16
)

// find waits until something can be taken, and returns it with those for whom; or nothing when t has been served, or left. It tells those
// who don't wait for an item when there is none.
func (e *engine) findItems(ctx context.Context, t *takeRequest) ([]assignment, error) {
	c := &e.consumer
	upTo := 0 // who came later may be told nothing by what was seen
	for looked := false; !t.answered; {
		wanted, tries, last := e.demand()
		if wanted == 0 {
			return nil, nil
		}
		if time.Since(c.listedAt) > listLife || c.misses > maxMisses {
			c.available, c.listedAt = nil, time.Time{}
		}
		picks := c.takeable(min(wanted, c.batchSize), time.Now())
		switch {
		case len(picks) > 0:
			picks, err := e.readPicks(ctx, picks, looked)
			if err != nil {
				return nil, err
			}
			if found := e.assign(picks, last); len(found) > 0 {
				return found, nil
			}
		case !looked && (tries || !c.watchesQueue()):
			if _, err := e.refresh(ctx, false); err != nil {
				return nil, err
			}
			looked, upTo = true, last
		case looked && tries:
			looked = e.answerEmpty(upTo)
		default:
			if err := e.await(ctx); err != nil {
				return nil, err
			}
			looked, upTo = len(c.available) > 0, 0
		}
	}
	return nil, nil
}

// wanted returns how many wait, whether some of them won't wait for an item, and the number of who came last.
func (e *engine) demand() (n int, tries bool, last int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.waitingTakes {
		tries = tries || t.try
	}
	return len(e.waitingTakes), tries, e.lastNumber
}

// serveNone tells those up to a number who don't wait that there is nothing. False if there are none of them.
func (e *engine) answerEmpty(last int) bool {
	e.mu.Lock()
	var none []*takeRequest
	for _, t := range e.waitingTakes {
		if t.try && t.number <= last {
			none = append(none, t)
		}
	}
	e.mu.Unlock()
	for _, t := range none {
		e.answer(t, takeResult{})
	}
	return len(none) > 0
}

// pick returns the first n items that can be taken now.
func (c *consumer) takeable(n int, now time.Time) []*entry {
	for i, x := range c.available {
		if i == n || x.due > now.UnixMilli() { // sorted by that, where it is set
			return c.available[:i]
		}
	}
	return c.available
}

// strike takes an item from the list.
func (c *consumer) remove(x *entry) {
	for i, other := range c.available {
		if other == x {
			if i == 0 {
				c.available = c.available[1:]
			} else {
				c.available = append(c.available[:i:i], c.available[i+1:]...)
			}
			return
		}
	}
}

// look lists the queue. With watch, fires has what tells of changes.
func (e *engine) refresh(ctx context.Context, watch bool) (fires []<-chan zk.Event, err error) {
	c := &e.consumer
	for tries := 1; ; tries++ {
		items, locks, err := e.listBoth(ctx, watch)
		if errors.Is(err, zk.ErrNoNode) && watch && tries < maxPathTries { // what is not there can't be watched
			if err := e.makePaths(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, zk.ErrNoNode) {
			items, locks, err = listing{stat: &zk.Stat{}}, listing{}, nil
		}
		if err != nil {
			return nil, err
		}
		c.available, c.listedAt, c.misses = e.layout.sorted(items.names), time.Now(), 0
		c.creationMark = creationMark(items.stat)
		if len(locks.names) > 0 {
			c.available = unlocked(c.available, locks.names)
		}
		return []<-chan zk.Event{items.fires, locks.fires}, nil
	}
}

// created returns twice the number of children that a znode has ever had: Cversion counts what came and what went.
func creationMark(stat *zk.Stat) int64 { return int64(stat.Cversion) + int64(stat.NumChildren) }

func unlocked(list []*entry, locks []string) []*entry {
	locked := make(map[string]bool, len(locks))
	for _, name := range locks {
		locked[name] = true
	}
	free := list[:0]
	for _, x := range list {
		if !locked[x.name] {
			free = append(free, x)
		}
	}
	return free
}

type listing struct {
	names []string
	stat  *zk.Stat
	fires <-chan zk.Event
}

// listBoth lists items and locks at the same time.
func (e *engine) listBoth(ctx context.Context, watch bool) (items, locks listing, err error) {
	list := func(path string) (l listing, err error) {
		if watch {
			l.names, l.stat, l.fires, err = e.client.ChildrenW(ctx, path)
		} else {
			l.names, l.stat, err = e.client.Children(ctx, path)
		}
		return l, err
	}
	if e.locks == "" {
		items, err = list(e.path)
		return items, locks, err
	}
	var (
		wg       sync.WaitGroup
		locksErr error
	)
	// Ends with its answer; awaited below.
	wg.Go(func() { locks, locksErr = list(e.locks) })
	items, err = list(e.path)
	wg.Wait()
	if err == nil {
		err = locksErr
	}
	return items, locks, err
}

// read returns those of the picks that are there, with what they have. It asks for those that were not read ahead, all at once; and for
// whether something was put that comes before them, unless the queue was listed just now: then there are none.
func (e *engine) readPicks(ctx context.Context, picks []*entry, looked bool) ([]*entry, error) {
	c := &e.consumer
	n := len(picks)
	if c.misses > 0 && len(c.available) > n { // who is behind others catches up at a bound, not step by step
		picks = c.takeable(min(n+2*c.misses, maxMisses), time.Now())
	}
	picks = append([]*entry(nil), picks...)
	var (
		wg      sync.WaitGroup
		stat    *zk.Stat
		statErr error
	)
	if e.layout.sortKey != nil && !looked {
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
	case e.layout.sortKey != nil && !looked && (stat == nil || creationMark(stat) != c.creationMark):
		c.available, c.listedAt = nil, time.Time{}
		return nil, nil
	}
	there := picks[:0]
	for _, x := range picks {
		if x.content != nil {
			there = append(there, x)
			continue
		}
		c.remove(x)
		c.misses++
	}
	return there[:min(n, len(there))], nil
}

// get reads those that were not read, all at once. Those that are gone stay without content.
func (e *engine) fetch(ctx context.Context, entries []*entry) error {
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(entries))
	)
	one := func(i int, x *entry) {
		data, stat, err := e.client.Get(ctx, e.child(x.name))
		switch {
		case err == nil:
			x.content = &content{data, stat}
		case !errors.Is(err, zk.ErrNoNode):
			errs[i] = err
		}
	}
	var missing []int
	for i, x := range entries {
		if x.content == nil {
			missing = append(missing, i)
		}
	}
	for n, i := range missing {
		if n == len(missing)-1 {
			one(i, entries[i])
			break
		}
		// Ends with its answer; awaited below.
		wg.Go(func() { one(i, entries[i]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
