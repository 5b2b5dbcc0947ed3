package election

import (
	"context"
	"fmt"
	"sync"

	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Latch is a candidate in an election from Start to Close: Curator's LeaderLatch. After the loss of
// its session or the release of its leadership, a Latch joins again at the end of the line. Safe
// for concurrent use.
type Latch struct {
	candidate
	// ends when Close no longer waits; cleanup then continues in the background
	closeCtx    context.Context
	stopWaiting context.CancelFunc
	done        chan struct{} // closed when run has ended

	mu      sync.Mutex         // guards the fields below
	runCtx  context.Context    // ends with Close and with the ctx of Start; nil before these calls
	stop    context.CancelFunc // of runCtx
	hold    *recipes.Hold      // nil unless leading
	changed wakeup.Broadcast   // sent at each change that Await must see
	err     error              // why run ended, other than Close

	leaveErr error // result of leaving the last place; readable after done
}

// NewLatch returns a latch for the election at path. id identifies the candidate to others. The
// latch joins the election on Start.
func NewLatch(c *recipes.Client, path, id string) *Latch {
	l := &Latch{candidate: candidate{c, path, latchName, id}, done: make(chan struct{})}
	l.closeCtx, l.stopWaiting = context.WithCancel(context.Background())
	return l
}

// Start makes the latch join the election, until ctx ends or Close, and returns at once. A second
// call does nothing; after Close the error is recipes.ErrClosed.
func (l *Latch) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.runCtx == nil:
	case l.runCtx.Err() != nil:
		return fmt.Errorf("election: start latch of %s: %w", l.path, recipes.ErrClosed)
	default:
		return nil
	}
	l.runCtx, l.stop = context.WithCancel(ctx)
	// Ends with runCtx, when the server refuses, or when the Client is closed. Close waits.
	go l.run()
	return nil
}

// Await waits until the latch leads and returns its leadership, at once if the latch leads already.
// After a leadership has ended, Await waits for the next.
//
// To resign, release the leadership: the latch then joins again at the end of the line. If the
// server refuses the latch, Await returns that error and the latch stays out of the election. After
// Close the error is recipes.ErrClosed, and before Start recipes.ErrNotStarted.
func (l *Latch) Await(ctx context.Context) (*recipes.Hold, error) {
	for {
		l.mu.Lock()
		runCtx, held, err, changed := l.runCtx, l.hold, l.err, l.changed.Next()
		l.mu.Unlock()
		switch {
		case runCtx == nil:
			return nil, fmt.Errorf("election: await leadership of %s: %w", l.path, recipes.ErrNotStarted)
		case runCtx.Err() != nil:
			return nil, fmt.Errorf("election: await leadership of %s: %w", l.path, recipes.ErrClosed)
		case err != nil:
			return nil, err
		case held != nil && held.Context().Err() == nil:
			return held, nil
		}
		select {
		case <-changed:
		case <-runCtx.Done():
		case <-ctx.Done():
			return nil, &recipes.Error{Op: "await leadership", Path: l.path, Err: calls.ContextError(ctx)}
		}
	}
}

// Leadership returns the leadership, or nil if the latch does not lead.
func (l *Latch) Leadership() *recipes.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil || l.hold.Context().Err() != nil {
		return nil
	}
	return l.hold
}

// Close ends the leadership, leaves the election, and waits until the latch's znode is gone. After
// the session timeout Close returns recipes.ErrOutcomeUnknown, and the cleanup continues in the
// background. Close must be called after Start.
func (l *Latch) Close() error {
	l.mu.Lock()
	if l.runCtx == nil {
		l.runCtx, l.stop = context.WithCancel(context.Background())
		close(l.done)
	}
	l.mu.Unlock()
	l.stop()
	return calls.Close(l.client, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, l.stopWaiting)()
		<-l.done // soon, even if ctx has ended: cleanup then continues in the background
		return l.leaveErr
	})
}

func (l *Latch) run() {
	defer close(l.done)
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
			// The latch may have been closed while waiting, or the leadership may have ended while
			// its znode still exists.
			l.leaveErr = place.Leave(l.closeCtx)
		}
		if isFinal(err) {
			l.mu.Lock()
			l.err = err
			l.changed.Send()
			l.mu.Unlock()
			return
		}
		if err != nil {
			pauseBeforeRetry(l.runCtx, err)
		}
	}
}

// join takes a place in line. Closing the latch does not interrupt Join, because the znode could
// then appear after Close has returned.
func (l *Latch) join() (*contend.Place, error) {
	if _, err := l.client.AwaitSession(l.runCtx); err != nil {
		return nil, err
	}
	return contend.Join(l.closeCtx, l.client, l.path, l.name, []byte(l.id))
}

// lead returns when the leadership has ended.
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
	l.changed.Send()
}
