package election

import (
	"context"
	"sync"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Latch stands in an election from Start to Close: Curator's LeaderLatch. When it loses its session it stands again, at the end of the line, and
// so it does when its leadership is released. Safe for concurrent use.
type Latch struct {
	candidate
	runCtx      context.Context // until Close
	stopRunning context.CancelFunc
	closeCtx    context.Context // until nobody waits in Close any more: what is to be undone then goes on in the background
	stopWaiting context.CancelFunc
	done        chan struct{} // closed when it stands no more

	mu      sync.Mutex // guards what follows
	started bool
	closed  bool
	hold    *recipes.Hold // nil: it does not lead
	changed chan struct{} // closed at the next change of what Await looks at
	err     error         // why it stands no more, other than Close

	leaveErr error // what came of leaving the last place; to be read after done
}

// NewLatch returns a latch for the election at path. id says to others who it is. It stands when it is started.
func NewLatch(c *recipes.Client, path, id string) *Latch {
	l := &Latch{candidate: candidate{c, path, latchName, id}, done: make(chan struct{}), changed: make(chan struct{})}
	l.runCtx, l.stopRunning = context.WithCancel(context.Background())
	l.closeCtx, l.stopWaiting = context.WithCancel(context.Background())
	return l
}

// Start lets it stand, and does not wait for anything. A second Start does nothing, nor does one after Close.
func (l *Latch) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started || l.closed {
		return
	}
	l.started = true
	// Ends with Close, or when the server refuses or the Client is closed; Close waits for it.
	go func() {
		defer close(l.done)
		l.run()
	}()
}

// Await waits until it leads, and returns its leadership; when it leads already, that is at once. After that has ended, Await waits for the
// next.
//
// Releasing the leadership is to resign: the latch stands again, at the end. When the server refuses to let it stand, Await says
// so; the latch then stands no more. After Close the error is ErrClosed.
func (l *Latch) Await(ctx context.Context) (*recipes.Hold, error) {
	for {
		l.mu.Lock()
		held, err, changed := l.hold, l.err, l.changed
		if l.closed {
			err = ErrClosed
		}
		l.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case held != nil && held.Context().Err() == nil:
			return held, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &recipes.Error{Op: "await leadership", Path: l.path, Err: contend.ContextError(ctx)}
		}
	}
}

// Leadership returns its leadership, or nil if it does not lead now.
func (l *Latch) Leadership() *recipes.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil || l.hold.Context().Err() != nil {
		return nil
	}
	return l.hold
}

// Close ends its leadership, if it leads, and its standing, and waits until its znode is gone. When ctx ends before, that goes on in the
// background, and the error says so. It must be called if Start was.
func (l *Latch) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.notify()
	}
	started := l.started
	l.mu.Unlock()
	l.stopRunning()
	if !started {
		l.stopWaiting()
		return nil
	}
	defer context.AfterFunc(ctx, l.stopWaiting)()
	<-l.done // when ctx has ended, soon: nothing that is waited for goes on then
	return l.leaveErr
}

// stand stands until it is closed.
func (l *Latch) run() {
	defer l.stopWaiting()
	for l.runCtx.Err() == nil {
		place, err := l.join()
		if l.leaveErr = nil; l.closeCtx.Err() != nil {
			l.leaveErr = err
		}
		if err == nil {
			var held *recipes.Hold
			if held, err = place.Await(l.runCtx, contend.Exclusive); err == nil {
				l.lead(held)
			}
			// It may be that it waited when it was closed, or that leadership ended otherwise than by the znode's going.
			l.leaveErr = place.Leave(l.closeCtx)
		}
		if isFinal(err) {
			l.mu.Lock()
			l.err = err
			l.notify()
			l.mu.Unlock()
			return
		}
		if err != nil {
			pauseBeforeRetry(l.runCtx, err)
		}
	}
}

// join takes a place in line. One that is being taken is not given up at once when the latch is closed, or it might come when Close has returned.
func (l *Latch) join() (*contend.Place, error) {
	if _, err := l.client.AwaitSession(l.runCtx); err != nil {
		return nil, err
	}
	return contend.Join(l.closeCtx, l.client, l.path, l.name, []byte(l.id))
}

// lead returns when leadership has ended.
func (l *Latch) lead(held *recipes.Hold) {
	l.setHold(held)
	select {
	case <-held.Context().Done():
	case <-l.runCtx.Done():
		held.End()
	}
	l.setHold(nil)
}

func (l *Latch) setHold(held *recipes.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = held
	l.notify()
}

// tell wakes those in Await. l.mu is held.
func (l *Latch) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}
