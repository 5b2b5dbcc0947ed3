package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// membersSuffix added to a queue's path gives the parent of the znodes of the queue's Go users. The
// parent must not be inside the queue, where kazoo would take any child for an item.
const membersSuffix = "-members"

// engine implements all kinds of queues. Safe for concurrent use.
//
// Calls share requests. A goroutine in sendLoop sends the items of all Put calls. One caller of
// Take is the leader, which finds and claims items for all callers of this process, and passes
// leadership on after each claim. The chief (await.go) is one consumer among all processes.
type engine struct {
	client  *recipes.Client
	path    string // parent of the items
	locks   string // parent of the locks; "" without locks
	members string // parent of the znodes of consumers and producers
	layout  *layout
	max     int    // maximum number of items; 0 means no limit
	id      string // written into locks and the chief's znode

	mu           sync.Mutex                 // guards the fields below; never held while waiting
	waitingPuts  []*putRequest              // not in inFlight yet
	inFlight     []*putRequest              // the batch being sent; some may be answered
	sending      bool                       // sendLoop runs; nothing else sends waitingPuts
	stopWaiting  context.CancelFunc         // ends the wait for a session of the batch being sent
	waitingTakes []*takeRequest             // not answered yet, in order of arrival
	lastNumber   int                        // number of the latest takeRequest
	hasLeader    bool                       // a caller of Take is the leader
	heldItems    map[*recipes.Hold]struct{} // held items; some may have ended just now

	wakeLeader chan struct{} // tells the leader that a Try method wants an answer; capacity 1

	putWriter *exactlyonce.Writer // used by sendLoop, and to delete items and locks
	consumer  consumer            // owned by the leader
}

// engineKey identifies an engine. Queues with equal keys on one Client share an engine.
type engineKey struct {
	path, items string
	layout      *layout
	locks       string
	max         int
}

// newEngine returns the engine for a queue whose items are below path+items, shared with equal
// queues of the Client.
func newEngine(c *recipes.Client, path, items string, l *layout, opts []Option) *engine {
	e := &engine{client: c, path: path + items, members: path + membersSuffix, layout: l, id: guid.NewHex(), wakeLeader: make(chan struct{}, 1)}
	e.heldItems = make(map[*recipes.Hold]struct{})
	for _, o := range opts {
		if o != nil {
			o(e)
		}
	}
	e.putWriter = exactlyonce.New(c, e.members)
	e.consumer = consumer{writer: exactlyonce.New(c, e.members), batchSize: firstClaim}
	return recipes.Shared(c, engineKey{path, items, l, e.locks, e.max}, func() *engine { return e })
}

// Close deletes the znodes of this Client that are not items, which would otherwise exist until the
// session ends. Close is for programs that use many queues in turn. Znodes that other users of the
// same Client need for a Put, a Take or a held Item stay until the next Close. The queue can be
// used after Close. Close waits for the session timeout at most.
func (e *engine) Close() error { return calls.Close(e.client, e.close) }

func (e *engine) close(ctx context.Context) error {
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

// trackHeld remembers a held item, whose Guard checks the consumer's marker.
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

// holdsItem reports whether an item is held. Only the leader may rely on the answer: for others,
// one more item may be held meanwhile.
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

func (e *engine) child(name string) string { return znodepath.Join(e.path, name) }

func (e *engine) lock(name string) string { return znodepath.Join(e.locks, name) }

// makePaths creates the parents that a queue needs. Parents that Curator and kazoo create as
// persistent znodes are persistent here too: a container that is deleted and created again would
// reuse sequence numbers.
func (e *engine) makePaths(ctx context.Context) error {
	for _, path := range []string{e.path, e.locks} {
		if path == "" {
			continue
		}
		_, err := e.client.Idempotent().Create(ctx, path, nil, recipes.CreateOptions{Parents: true})
		if err != nil && !errors.Is(err, proto.ErrNodeExists) {
			return err
		}
	}
	return e.client.Ensure(ctx, e.members)
}

// write is w.Write, and creates missing parents of what ops create.
func (e *engine) write(ctx context.Context, w *exactlyonce.Writer, ops ...client.Op) (exactlyonce.Result, error) {
	for tries := 1; ; tries++ {
		r, err := w.Write(ctx, ops...)
		// After a lost answer, resolveClaim looks at each item of a claim.
		lostClaim := w == e.consumer.writer && errors.Is(err, recipes.ErrOutcomeUnknown)
		if !errors.Is(err, proto.ErrNoNode) || lostClaim || tries == maxPathTries {
			return r, err
		}
		if i := exactlyonce.FailedAt(r.Ops); i < len(r.Ops) && ops[i].Request.Op != proto.OpCreate2 {
			return r, err
		} // otherwise a creation has failed, perhaps that of the marker
		if err := e.makePaths(ctx); err != nil {
			return exactlyonce.Result{}, err
		}
	}
}

// maxPathTries bounds how often missing parents are created for a request.
const maxPathTries = 5

// contextError is the error of a call whose ctx has ended. unknown: it may have had an effect.
func (e *engine) contextError(ctx context.Context, op string, unknown bool) error {
	return &recipes.Error{Op: op, Path: e.path, Err: calls.ContextError(ctx), Unknown: unknown}
}
