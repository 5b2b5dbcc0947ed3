package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

type putRequest struct {
	path                string     // of the znodes, without the sequence number
	data                [][]byte   // per item
	size                int        // total bytes of data
	result              chan error // capacity 1: the sender must not block
	abandoned, answered bool       // the caller has returned; result was sent; guarded by engine.mu
}

// The limits of a batch. A single putRequest that exceeds them is sent alone.
const (
	maxBatchItems = 128
	maxBatchBytes = 256 << 10
)

// putItems puts items whose znodes' names begin with name, all or none.
func (e *engine) putItems(ctx context.Context, name string, items ...[]byte) error {
	if len(items) == 0 {
		return nil
	}
	release, err := e.awaitRoom(ctx)
	if err != nil {
		return err
	}
	defer release()
	p := &putRequest{path: e.child(name), result: make(chan error, 1)}
	for _, item := range items {
		data := slices.Clone(item) // the request may be sent after the caller has returned
		if e.layout.framed {
			data = frame(item)
		}
		p.data = append(p.data, data)
		p.size += len(data)
	}
	e.mu.Lock()
	e.waitingPuts = append(e.waitingPuts, p)
	start := !e.sending
	e.sending = true
	e.mu.Unlock()
	if start {
		if err := e.client.Background(ctx, e.sendLoop); err != nil {
			e.failWaitingPuts(err)
		}
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		return e.abandonPut(ctx, p)
	}
}

func (e *engine) abandonPut(ctx context.Context, p *putRequest) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case err := <-p.result:
		return err
	default:
	}
	if i := slices.Index(e.waitingPuts, p); i >= 0 {
		e.waitingPuts = slices.Delete(e.waitingPuts, i, i+1)
		return e.contextError(ctx, "put", false)
	}
	p.abandoned = true
	if e.stopWaiting != nil && !slices.ContainsFunc(e.inFlight, func(p *putRequest) bool { return !p.abandoned && !p.answered }) {
		e.stopWaiting()
	}
	return e.contextError(ctx, "put", true)
}

func (e *engine) failWaitingPuts(err error) {
	e.mu.Lock()
	waiting := e.waitingPuts
	e.waitingPuts, e.sending = nil, false
	e.mu.Unlock()
	e.finishBatch(waiting, err)
}

// sendLoop sends the waiting items in order of arrival. Items that arrive during a request are sent
// together in the next.
func (e *engine) sendLoop(ctx context.Context) {
	for {
		waiting, stop := context.WithCancel(ctx)
		batch := e.nextBatch(stop)
		if batch == nil {
			stop()
			return
		}
		e.sendBatch(ctx, waiting, batch)
		stop()
	}
}

// nextBatch moves the requests that are sent together next to inFlight. If there are none,
// nextBatch returns nil and clears sending.
func (e *engine) nextBatch(stopWaiting context.CancelFunc) []*putRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, size := 0, 0
	for i, p := range e.waitingPuts {
		if i > 0 && (n+len(p.data) > maxBatchItems || size+p.size > maxBatchBytes) {
			break
		}
		n += len(p.data)
		size += p.size
		e.inFlight = e.waitingPuts[:i+1]
	}
	if len(e.waitingPuts) == 0 {
		e.inFlight, e.stopWaiting, e.waitingPuts, e.sending = nil, nil, nil, false
		return nil
	}
	e.inFlight = slices.Clone(e.inFlight)
	e.waitingPuts = slices.Delete(e.waitingPuts, 0, len(e.inFlight))
	e.stopWaiting = stopWaiting
	return e.inFlight
}

// sendBatch sends the items of batch in one request and answers their callers. The end of waiting
// only ends the wait for a session.
func (e *engine) sendBatch(ctx, waiting context.Context, batch []*putRequest) {
	for {
		s, err := e.client.AwaitSession(waiting)
		if err != nil {
			e.finishBatch(batch, err)
			return
		}
		var ops []client.Op
		for _, p := range batch {
			for _, data := range p.data {
				ops = append(ops, client.CreateOp(p.path, data, client.CreateOptions{Sequential: true}))
			}
		}
		in, cancel := s.Within(ctx)
		r, err := e.write(in, e.putWriter, ops...)
		cancel()
		switch {
		case err == nil:
			e.batchStored(ctx, batch, r.Ops)
			return
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			e.finishBatch(batch, err)
			return
		case s.Context().Err() != nil && ctx.Err() == nil:
			continue // nothing was put; the next session may succeed
		case len(batch) == 1:
			e.finishBatch(batch, err)
			return
		}
		for _, p := range batch { // each alone, to find the one that fails
			e.sendBatch(ctx, waiting, []*putRequest{p})
		}
		return
	}
}

// batchStored answers the callers of batch, and withdraws the items of abandoned requests. results
// is nil if the names are not known.
func (e *engine) batchStored(ctx context.Context, batch []*putRequest, results []client.Result) {
	var back []string
	e.mu.Lock()
	for _, p := range batch {
		if results != nil {
			for _, r := range results[:len(p.data)] {
				if p.abandoned {
					back = append(back, r.Path)
				}
			}
			results = results[len(p.data):]
		}
		p.result <- nil
		p.answered = true
	}
	e.mu.Unlock()
	for _, path := range back { // nobody waits for the result
		if e.locks == "" {
			_ = e.client.DeleteGuaranteed(ctx, path)
		} else {
			_, _ = e.removeItem(ctx, znodepath.Base(path))
		}
	}
}

func (e *engine) finishBatch(batch []*putRequest, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range batch {
		p.result <- err
		p.answered = true
	}
}

// removeItem removes an item from the queue, or returns false if the item was taken or is locked.
func (e *engine) removeItem(ctx context.Context, name string) (bool, error) {
	ops := e.removeOps(name, -1)
	r, err := e.write(ctx, e.putWriter, ops...)
	if errors.Is(err, proto.ErrNodeExists) || errors.Is(err, proto.ErrNoNode) && exactlyonce.FailedAt(r.Ops) == len(ops)-1 {
		return false, nil
	}
	return err == nil, err
}

// removeOps returns the operations that delete an item and fail if the item is locked.
func (e *engine) removeOps(name string, version int32) []client.Op {
	ops := []client.Op{client.DeleteOp(e.child(name), version)}
	if e.locks == "" {
		return ops
	}
	// Creating the lock fails if the item is locked. Nobody sees it: the same multi deletes it.
	return append([]client.Op{
		client.CreateOp(e.lock(name), nil, client.CreateOptions{Ephemeral: true}),
		client.DeleteOp(e.lock(name), -1),
	}, ops...)
}

// roomPrefix begins the names of producers' znodes that wait for room in a full queue.
const roomPrefix = "room-"

// awaitRoom waits until the queue has fewer than MaxItems items. Only the first of the waiting
// producers watches the queue; release lets the next producer do so.
func (e *engine) awaitRoom(ctx context.Context) (release func(), err error) {
	none := func() {}
	if e.max <= 0 {
		return none, nil
	}
	stat, err := e.client.Exists(ctx, e.path)
	if err != nil || stat == nil || int(stat.NumChildren) < e.max {
		return none, err
	}
	for {
		held, err := contend.Acquire(ctx, e.client, e.members, roomPrefix, nil, roomRule)
		if err != nil {
			return none, err
		}
		in, cancel := held.Within(ctx)
		err = e.watchForRoom(in)
		cancel()
		leave := func() { _ = held.Release(ctx) } // continues in the background if ctx ends first
		if err == nil {
			return leave, nil
		}
		leave()
		if ctx.Err() != nil {
			return none, e.contextError(ctx, "put", false)
		}
		if !recipes.IsLost(err) {
			return none, err
		}
	}
}

func (e *engine) watchForRoom(ctx context.Context) error {
	for {
		names, _, watch, err := e.client.ChildrenW(ctx, e.path)
		if err != nil || len(names) < e.max {
			return contend.IgnoreMissing(err)
		}
		if err := calls.Await(ctx, "put", e.path, watch); err != nil {
			return err
		}
	}
}

// roomRule is contend.Exclusive among the producers that wait for room.
func roomRule(names []string, own int) string {
	for own--; own >= 0; own-- {
		if isAwaitingRoom(names[own]) {
			return names[own]
		}
	}
	return ""
}
