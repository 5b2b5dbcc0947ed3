package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// Errors of this package. Those of the server are the sentinels of package zk, wrapped in *recipes.Error.
var (
	// ErrFrame means that what was taken is not written as Curator writes items. Data is then what the znode had.
	ErrFrame = errors.New("queue: not an item of Curator's")
	// ErrNoLocks means that a queue was made without Locks, and so nothing can be taken with a lock.
	ErrNoLocks = errors.New("queue: no path for locks")
	// ErrArgument means that an item can't have that priority, id or time. Nothing was written.
	ErrArgument = errors.New("queue: bad argument")
)

// Option changes what a queue is.
type Option func(*engine)

// Locks is Curator's lockPath: items can be taken with a lock, which is a child of path. All consumers of a queue must have the same, or none.
// NewKazooLocking has one already.
func Locks(path string) Option { return func(e *engine) { e.locks = path } }

// MaxItems lets Put wait while there are n items or more. Those who put at the same time may go over it, each by what it puts.
func MaxItems(n int) Option { return func(e *engine) { e.max = n } }

// Message is what was taken.
type Message struct {
	Name string    // of the item's znode
	Data []byte    // what was put; the taker's own
	More [][]byte  // those that were put into the same znode after it, as Curator's putMulti does
	Put  time.Time // when, by the leader's clock
}

// ID is that of an item of an ID queue, as the server has it: bars and slashes are underscores.
func (m Message) ID() string { return curatorID(m.Name) }

// Queue is first in, first out.
type Queue struct{ *engine }

// New returns Curator's DistributedQueue. It asks the server nothing.
func New(c *recipes.Client, path string, opts ...Option) *Queue {
	return &Queue{newEngine(c, path, "", plainLayout, opts)}
}

// NewSimple returns Curator's SimpleDistributedQueue, which is ZooKeeper's own recipe too: a znode has nothing but an item's data. It asks the
// server nothing.
func NewSimple(c *recipes.Client, path string, opts ...Option) *Queue {
	return &Queue{newEngine(c, path, "", simpleLayout, opts)}
}

// Put puts an item, once. data is not kept.
//
// It is there when Put returns nil. An error with recipes.ErrOutcomeUnknown means that it may have been put: ctx ended while the answer
// was awaited, and then the item is taken back in the background if nobody was faster; or the session was lost in that moment. With any other
// error it was not put.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.putItems(ctx, q.layout.prefix, data)
}

// PutAll puts items one after the other, all or none, with nobody else's between them. They must fit into one request together.
func (q *Queue) PutAll(ctx context.Context, items ...[]byte) error {
	return q.putItems(ctx, q.layout.prefix, items...)
}

// Priority is a queue from which the items with the least priority come first, and those of the same in the order in which they were put.
type Priority struct {
	*engine
	name        func(priority int32) string
	least, most int32
}

// NewPriority returns Curator's DistributedPriorityQueue. It asks the server nothing.
func NewPriority(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "", priorityLayout, opts), curatorPriorityName, -1 << 31, 1<<31 - 1}
}

// KazooDefault is the priority that kazoo gives what has none. Its priorities are 0 to 999.
const KazooDefault = 100

// NewKazoo returns kazoo's Queue. It asks the server nothing.
func NewKazoo(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "", kazooLayout, opts), kazooName, 0, 999}
}

// NewKazooLocking returns kazoo's LockingQueue: items are below path/entries, and their locks below path/taken. It asks the server nothing.
func NewKazooLocking(c *recipes.Client, path string, opts ...Option) *Priority {
	return &Priority{newEngine(c, path, "/entries", kazooLayout, append([]Option{Locks(path + "/taken")}, opts...)), kazooName, 0, 999}
}

// Put is Queue.Put with a priority.
func (q *Priority) Put(ctx context.Context, priority int32, data []byte) error {
	return q.PutAll(ctx, priority, data)
}

// PutAll is Queue.PutAll with a priority.
func (q *Priority) PutAll(ctx context.Context, priority int32, items ...[]byte) error {
	if priority < q.least || priority > q.most {
		return fmt.Errorf("%w: priority %d of a queue from %d to %d", ErrArgument, priority, q.least, q.most)
	}
	return q.putItems(ctx, q.name(priority), items...)
}

// Delay is a queue whose items can't be taken before their time, by the wall clock of who takes them. What is due first comes first.
type Delay struct{ *engine }

// NewDelay returns Curator's DistributedDelayQueue. It asks the server nothing.
func NewDelay(c *recipes.Client, path string, opts ...Option) *Delay {
	return &Delay{newEngine(c, path, "", delayLayout, opts)}
}

// Put is Queue.Put of an item that is not to be taken before due, to the next millisecond.
func (q *Delay) Put(ctx context.Context, due time.Time, data []byte) error {
	ms := due.Add(time.Millisecond - 1).UnixMilli()
	if ms <= 0 {
		return fmt.Errorf("%w: due at %v", ErrArgument, due)
	}
	return q.putItems(ctx, curatorDelayName(ms), data)
}

// ID is a queue, first in, first out, whose items have ids.
type ID struct{ *engine }

// NewID returns Curator's DistributedIdQueue. It asks the server nothing.
func NewID(c *recipes.Client, path string, opts ...Option) *ID {
	return &ID{newEngine(c, path, "", plainLayout, opts)}
}

// Put is Queue.Put of an item with an id, which others may have too. Bars and slashes in it become underscores.
func (q *ID) Put(ctx context.Context, id string, data []byte) error {
	if id == "" {
		return fmt.Errorf("%w: no id", ErrArgument)
	}
	return q.putItems(ctx, curatorIDName(id), data)
}

// Remove takes all items with that id out of the queue that nobody has locked, and returns how many it was that did so. With an error there may
// be more left, and with recipes.ErrOutcomeUnknown one more may have been removed.
func (q *ID) Remove(ctx context.Context, id string) (n int, err error) {
	names, _, err := q.client.Children(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, x := range q.layout.sorted(names) {
		if curatorID(x.name) != fixID(id) {
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
