package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Option configures a queue.
type Option func(*engine)

// Locks lets consumers lock items; the locks are children of path, which is Curator's lockPath. All
// consumers of a queue must have the same path, or none. NewKazooLocking includes this option.
func Locks(path string) Option { return func(e *engine) { e.locks = path } }

// MaxItems makes Put wait while there are n items or more. Concurrent calls of Put may exceed n,
// each by its own items.
func MaxItems(n int) Option { return func(e *engine) { e.max = n } }

// Message is an item that was taken or locked.
type Message struct {
	Name string    // of the item's znode
	Data []byte    // as it was put; owned by the caller
	More [][]byte  // further items of the same znode, as Curator's putMulti writes them
	Put  time.Time // when it was put, by the leader's clock
	ID   string    // of PutID; bars and slashes have become underscores
}

// Queue is a first-in, first-out queue.
type Queue struct{ *engine }

// New returns Curator's DistributedQueue and, with PutID, its DistributedIdQueue.
func New(c *recipes.Client, path string, opts ...Option) *Queue {
	return &Queue{newEngine(c, path, "", plainLayout, opts)}
}

// NewSimple returns Curator's SimpleDistributedQueue, which is also ZooKeeper's own recipe: a znode
// contains an item's data and nothing else.
func NewSimple(c *recipes.Client, path string, opts ...Option) *Queue {
	return &Queue{newEngine(c, path, "", simpleLayout, opts)}
}

// Put puts items, exactly once and in order, all or none, with no other items between them. All
// must fit into one request. The items may be modified after Put has returned.
//
// When Put returns nil, the items are in the queue. After recipes.ErrOutcomeUnknown they may be in
// the queue, because the session was lost or ctx ended before the answer. If ctx ended, they are
// removed in the background, unless a consumer takes them first or the answer is lost too. After
// any other error nothing was put.
func (q *Queue) Put(ctx context.Context, items ...[]byte) error {
	return q.putItems(ctx, q.layout.prefix, items...)
}

// PutID is Put of an item with an ID, which need not be unique. Bars and slashes in the ID become
// underscores. A queue of NewSimple has no IDs.
func (q *Queue) PutID(ctx context.Context, id string, data []byte) error {
	if err := q.checkID(id); err != nil {
		return err
	}
	return q.putItems(ctx, curatorPrefix+"|"+sanitizeID(id)+"|", data)
}

// Remove removes all items with the given ID that nobody has locked, and returns their number.
// After an error some may be left; after recipes.ErrOutcomeUnknown one more may have been removed.
func (q *Queue) Remove(ctx context.Context, id string) (n int, err error) {
	if err := q.checkID(id); err != nil {
		return 0, err
	}
	names, err := contend.ChildNames(ctx, q.client, q.path)
	if err != nil {
		return 0, err
	}
	for _, x := range q.layout.sorted(names) {
		if curatorID(x.name) != sanitizeID(id) {
			continue
		}
		removed, err := q.removeItem(ctx, x.name)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// checkID refuses an empty ID, which would match all items without an ID.
func (q *Queue) checkID(id string) error {
	if id == "" || q.layout != plainLayout {
		return fmt.Errorf("queue %s: %w: an ID must not be empty, and only queues of New have IDs; the ID is %q", q.path, recipes.ErrArgument, id)
	}
	return nil
}

// Priority is a queue in which items with the smallest priority come first, and items of equal
// priority in the order in which they were put.
type Priority struct {
	*engine
	name        func(priority int32) string
	least, most int32
}

// NewPriority returns Curator's DistributedPriorityQueue.
func NewPriority(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "", priorityLayout, opts), curatorPriorityName, -1 << 31, 1<<31 - 1}
}

// NewKazoo returns kazoo's Queue, with priorities from 0 to 999; kazoo's default is 100.
func NewKazoo(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "", kazooLayout, opts), kazooName, 0, 999}
}

// NewKazooLocking returns kazoo's LockingQueue, with items in path/entries and locks in path/taken.
func NewKazooLocking(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "/entries", kazooLayout, append([]Option{Locks(path + "/taken")}, opts...)), kazooName, 0, 999}
}

// Put is Queue.Put with a priority.
func (q *Priority) Put(ctx context.Context, priority int32, items ...[]byte) error {
	if priority < q.least || priority > q.most {
		return fmt.Errorf("queue: %w: priority %d is not between %d and %d", recipes.ErrArgument, priority, q.least, q.most)
	}
	return q.putItems(ctx, q.name(priority), items...)
}

// Delay is a queue whose items cannot be taken before their due time, by the consumer's wall clock.
// Items that are due earlier come first.
type Delay struct{ *engine }

// NewDelay returns Curator's DistributedDelayQueue.
func NewDelay(c *recipes.Client, path string, opts ...Option) *Delay {
	return &Delay{newEngine(c, path, "", delayLayout, opts)}
}

// Put is Queue.Put of an item that must not be taken before due, rounded up to a millisecond.
func (q *Delay) Put(ctx context.Context, due time.Time, data []byte) error {
	ms := due.Add(time.Millisecond - 1).UnixMilli()
	if ms <= 0 {
		return fmt.Errorf("queue: %w: due time %v is before 1970", recipes.ErrArgument, due)
	}
	return q.putItems(ctx, fmt.Sprintf("%s|%08X|", curatorPrefix, ms), data)
}
