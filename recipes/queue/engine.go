package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// membersSuffix makes of a queue's path that of the znode whose children are those who use it from Go. It can't be in the queue: what kazoo
// finds there it takes for an item.
const membersSuffix = "-members"

// engine is what all queues are made of. Safe for concurrent use.
type engine struct {
	client  *recipes.Client
	path    string // whose children are the items
	locks   string // whose children are the locks; "" without
	members string // whose children are who puts, who takes and who waits
	layout  *layout
	max     int    // of items; 0 is any number
	id      string // what is written into znodes of its own

	mu           sync.Mutex                 // guards what follows; nothing waits while it is held
	waitingPuts  []*putRequest              // that are not aboard yet
	inFlight     []*putRequest              // that are under way together
	sending      bool                       // somebody sees to puts and aboard
	stopWaiting  context.CancelFunc         // lets that one wait no longer for a session
	waitingTakes []*takeRequest             // who have nothing yet, in order
	lastNumber   int                        // how many takers there were
	hasLeader    bool                       // somebody has it
	heldItems    map[*recipes.Hold]struct{} // of items, some of which may have ended a moment ago

	wakeLeader chan struct{} // tells who has the baton that somebody wants an answer now; holds one

	putWriter *exactlyonce.Writer // of who is flying
	consumer  consumer            // of who has the baton
}

// engineKey is what queues of one Client have in common that are one.
type engineKey struct {
	path, items string
	layout      *layout
	locks       string
	max         int
}

// newEngine returns a queue named by path whose items are below it, or below path/items.
func newEngine(c *recipes.Client, path, items string, l *layout, opts []Option) *engine {
	e := &engine{client: c, path: path + items, members: path + membersSuffix, layout: l, id: newID(), wakeLeader: make(chan struct{}, 1)}
	e.heldItems = make(map[*recipes.Hold]struct{})
	for _, o := range opts {
		o(e)
	}
	e.putWriter = exactlyonce.New(c, e.members)
	e.consumer = consumer{writer: exactlyonce.New(c, e.members), batchSize: firstClaim}
	return c.Shared(engineKey{path, items, l, e.locks, e.max}, func() any { return e }).(*engine)
}

// Close deletes what this Client has of its own beside the queue's items, and would else have until its session ends: for who uses many
// queues, one after the other. Where others of the same Client put, take or hold an Item, what they need stays until it is closed once more; the
// queue can be used again.
func (e *engine) Close(ctx context.Context) error {
	err := e.putWriter.Close(ctx)
	e.mu.Lock()
	busy := e.hasLeader
	e.hasLeader = true
	e.mu.Unlock()
	if busy {
		return err
	}
	defer e.passLeadership()
	if !e.holdsItem() {
		err = errors.Join(err, e.consumer.writer.Close(ctx))
	}
	return errors.Join(err, e.resignChief(ctx))
}

// hold notes an item that is held: its Guard checks the consumer's marker.
func (e *engine) trackHeld(h *recipes.Hold) {
	e.mu.Lock()
	e.heldItems[h] = struct{}{}
	e.mu.Unlock()
	context.AfterFunc(h.Context(), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.heldItems, h)
	})
}

// holds reports whether an item is held. By whoever has the baton: else there may be one more.
func (e *engine) holdsItem() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h := range e.heldItems {
		if h.Context().Err() == nil {
			return true
		}
	}
	return false
}

// newID returns 32 hexadecimal digits, as kazoo writes them into locks.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends if the system has no randomness
	return hex.EncodeToString(b[:])
}

func (e *engine) child(name string) string { return znodepath.Join(e.path, name) }

func (e *engine) lock(name string) string { return znodepath.Join(e.locks, name) }

// makePaths makes the znodes that a queue needs. Those that Curator and kazoo make persistent are so here: a container that goes and comes
// back would begin with names that were there before.
func (e *engine) makePaths(ctx context.Context) error {
	for _, path := range []string{e.path, e.locks} {
		if path == "" {
			continue
		}
		_, err := e.client.Create(ctx, path, nil, recipes.CreateOptions{Parents: true})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return e.client.Ensure(ctx, e.members)
}

// ended is the error of a call whose ctx has ended. unknown: it may have had an effect all the same.
func (e *engine) contextError(ctx context.Context, op string, unknown bool) error {
	return &recipes.Error{Op: op, Path: e.path, Err: contend.ContextError(ctx), Unknown: unknown}
}
