package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// put is what one Put puts.
type put struct {
	name string     // of the znodes, without the number
	data [][]byte   // of each
	size int        // bytes of data
	done chan error // capacity 1: who answers does not wait
	gone bool       // nobody waits any more; guarded by engine.mu
}

// What goes into one request together. What is larger goes alone.
const (
	mostPuts  = 128
	mostBytes = 256 << 10
	// pathTries is how often missing znodes are made before an error is believed.
	pathTries = 5
)

// put puts items with that name, all or none.
func (e *engine) put(ctx context.Context, name string, items ...[]byte) error {
	if len(items) == 0 {
		return nil
	}
	release, err := e.awaitRoom(ctx)
	if err != nil {
		return err
	}
	defer release()
	p := &put{name: e.child(name), done: make(chan error, 1)}
	for _, item := range items {
		data := slices.Clone(item) // it may be sent when the caller has it back
		if e.layout.framed {
			data = frame(item)
		}
		p.data = append(p.data, data)
		p.size += len(data)
	}
	e.mu.Lock()
	e.puts = append(e.puts, p)
	start := !e.flying
	e.flying = true
	e.mu.Unlock()
	if start {
		if err := e.client.Background(ctx, e.fly); err != nil {
			e.failPuts(err)
		}
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return e.leavePut(ctx, p)
	}
}

// leavePut is for who does not wait any more.
func (e *engine) leavePut(ctx context.Context, p *put) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case err := <-p.done:
		return err
	default:
	}
	if i := slices.Index(e.puts, p); i >= 0 {
		e.puts = slices.Delete(e.puts, i, i+1)
		return e.ended(ctx, "put", false)
	}
	p.gone = true
	if e.halt != nil && !slices.ContainsFunc(e.aboard, waited) {
		e.halt()
	}
	return e.ended(ctx, "put", true)
}

func waited(p *put) bool { return !p.gone }

func (e *engine) failPuts(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.puts {
		p.done <- err
	}
	e.puts, e.flying = nil, false
}

// fly sends what is to be put, in the order in which it came: those that come while a request is under way go together in the next.
func (e *engine) fly(ctx context.Context) {
	for {
		waiting, stop := context.WithCancel(ctx)
		batch := e.board(stop)
		if batch != nil {
			e.send(ctx, waiting, batch)
		}
		stop()
		if batch == nil {
			return
		}
	}
}

// board takes those that go together next. With nil, nobody is flying any more.
func (e *engine) board(halt context.CancelFunc) []*put {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, size := 0, 0
	for i, p := range e.puts {
		if i > 0 && (n+len(p.data) > mostPuts || size+p.size > mostBytes) {
			break
		}
		n += len(p.data)
		size += p.size
		e.aboard = e.puts[:i+1]
	}
	if len(e.puts) == 0 {
		e.aboard, e.halt, e.puts, e.flying = nil, nil, nil, false
		return nil
	}
	e.aboard = slices.Clone(e.aboard)
	e.puts = slices.Delete(e.puts, 0, len(e.aboard))
	e.halt = halt
	return e.aboard
}

// send sends all of them in one request, and answers those who wait. Only waiting for a session ends with waiting.
func (e *engine) send(ctx, waiting context.Context, batch []*put) {
	for tries := 1; ; tries++ {
		s, err := e.client.AwaitSession(waiting)
		if err != nil {
			e.answer(batch, err)
			return
		}
		var ops []any
		for _, p := range batch {
			for _, data := range p.data {
				ops = append(ops, &zk.CreateRequest{Path: p.name, Data: data, Flags: zk.FlagSequence})
			}
		}
		in, cancel := s.Within(ctx)
		r, err := e.putWriter.Write(in, ops...)
		if errors.Is(err, zk.ErrNoNode) && tries < pathTries {
			if err = e.makePaths(in); err == nil {
				cancel()
				continue
			}
		}
		cancel()
		switch {
		case err == nil:
			e.landed(ctx, batch, r.Ops)
			return
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			e.answer(batch, err)
			return
		case s.Context().Err() != nil && ctx.Err() == nil:
			continue // nothing was put: the next session may do
		case len(batch) == 1:
			e.answer(batch, err)
			return
		}
		for _, p := range batch { // whose fault it is
			e.send(ctx, waiting, []*put{p})
		}
		return
	}
}

// landed answers those who wait, and takes back what nobody waits for any more. results are nil if the names are not known.
func (e *engine) landed(ctx context.Context, batch []*put, results []zk.MultiResponse) {
	var back []string
	e.mu.Lock()
	for _, p := range batch {
		if p.gone && results != nil {
			for _, r := range results[:len(p.data)] {
				back = append(back, r.String)
			}
		}
		if results != nil {
			results = results[len(p.data):]
		}
		p.done <- nil
	}
	e.aboard = nil
	e.mu.Unlock()
	for _, path := range back {
		e.takeBack(ctx, path)
	}
}

func (e *engine) answer(batch []*put, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range batch {
		p.done <- err
	}
}

// takeBack deletes an item, unless somebody has it.
func (e *engine) takeBack(ctx context.Context, path string) {
	if e.locks == "" {
		_ = e.client.DeleteGuaranteed(ctx, path) // nobody waits to hear of it
		return
	}
	_, _ = e.removeOne(ctx, nameOf(path)) // the same
}

// removeOne takes an item out of the queue, and reports whether it was this call that did so: else it was taken, or is locked.
func (e *engine) removeOne(ctx context.Context, name string) (bool, error) {
	ops := e.remove(name, -1)
	for tries := 1; ; tries++ {
		r, err := e.putWriter.Write(ctx, ops...)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode) && failedAt(r.Ops) == len(ops)-1:
			return false, nil
		case !errors.Is(err, zk.ErrNoNode), tries == pathTries:
			return false, err
		}
		if err := e.makePaths(ctx); err != nil {
			return false, err
		}
	}
}

// failedAt returns the index of the operation because of which the others were not done either; if it was none of these, how many there are.
func failedAt(results []zk.MultiResponse) int {
	for i, r := range results {
		if r.Error != nil {
			return i
		}
	}
	return len(results)
}

// remove returns what takes an item away for good, unless it is locked.
func (e *engine) remove(name string, version int32) []any {
	ops := []any{&zk.DeleteRequest{Path: e.child(name), Version: version}}
	if e.locks == "" {
		return ops
	}
	// That a lock can be made shows that there was none. It is never seen.
	return append([]any{
		&zk.CreateRequest{Path: e.lock(name), Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: e.lock(name), Version: -1},
	}, ops...)
}
