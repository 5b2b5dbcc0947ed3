// Package lifecycle records where a server is between New and the end of Close, and why it stopped.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Errors of Begin and WhyNot. Package server has the same variables.
var (
	ErrClosed     = errors.New("server: closed")
	ErrStarted    = errors.New("server: started already")
	ErrNotStarted = errors.New("server: not started")
)

// Life records how far a server has come. Its methods may be called from any goroutine.
//
// Invariants: Accepting changes from true to false only after Stopping is closed, so that WhyNot
// then knows the reason. The shutdown runs once, and only after a Start that was under way is over.
//
// If the server fails before Start sets Accepting, Accepting becomes true after Stopping is closed,
// and false again in the shutdown: Start returns the error and closes the server.
type Life struct {
	mu              sync.Mutex // guards these
	started, closed bool
	starting        chan struct{}      // closed when Start is over; nil: Start was not called
	abortStart      context.CancelFunc // ends a Start that is still running

	Cancel     context.CancelFunc // stops the node and the loops; set by Start before others can use it
	Goroutines sync.WaitGroup     // of the server; Close awaits them

	stopOnce  sync.Once
	stopping  chan struct{}
	stopped   chan struct{}         // closed at the end of Close
	cause     atomic.Pointer[error] // why the server stopped by itself
	err       chan error            // delivers the cause; capacity 1, because nobody may be listening
	Accepting atomic.Bool           // the node is open, and connections are taken
	Serving   atomic.Bool           // a leader was found once, and the server did not stop
}

// Init must be called before any other method.
func (l *Life) Init() {
	l.err, l.stopping, l.stopped = make(chan error, 1), make(chan struct{}), make(chan struct{})
}

// Begin marks the server as started. End cancels the context that Begin returns, and waits until
// finished is called.
func (l *Life) Begin(ctx context.Context) (_ context.Context, finished func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, ErrClosed
	case l.started:
		return nil, nil, ErrStarted
	}
	ctx, abort := context.WithCancel(ctx)
	starting := make(chan struct{})
	l.started, l.starting, l.abortStart = true, starting, abort
	return ctx, func() { close(starting); abort() }, nil
}

// End ends a Start that is still running, and calls shutdown with whether there was a Start. Later
// calls wait until the first returns, and return nil.
func (l *Life) End(shutdown func(started bool) error) error {
	l.mu.Lock()
	if starting := l.starting; starting != nil {
		l.abortStart()
		l.mu.Unlock()
		<-starting
		l.mu.Lock()
	}
	first, started := !l.closed, l.started
	l.closed = true
	// Not held during the shutdown: in a synctest bubble a goroutine that waits for a lock keeps
	// time from advancing, and the shutdown may wait for time to advance.
	l.mu.Unlock()
	if !first {
		<-l.stopped
		return nil
	}
	defer close(l.stopped)
	return shutdown(started)
}

// Stopping is closed when the server begins to stop, also if it stops by itself.
func (l *Life) Stopping() <-chan struct{} { return l.stopping }

// Stop releases all goroutines that wait for something that will not happen any more.
func (l *Life) Stop() {
	l.stopOnce.Do(func() { close(l.stopping) })
	l.Accepting.Store(false)
}

// Fail makes the server stop by itself, for that cause. then is called before Err delivers it.
func (l *Life) Fail(cause error, then func()) {
	l.Serving.Store(false)
	l.cause.CompareAndSwap(nil, &cause)
	l.Stop()
	then()
	select {
	case l.err <- cause:
	default:
	}
}

// Await waits until done is closed, and returns an error if the server stops or ctx ends first: in
// the latter case it begins with what, which names the event that is missing.
func (l *Life) Await(ctx context.Context, done <-chan struct{}, what string) error {
	select {
	case <-done:
		return nil
	case <-l.stopping:
		return l.WhyNot()
	case <-ctx.Done():
		return fmt.Errorf("server: %s: %w", what, ctx.Err())
	}
}

// Err delivers at most one error: why the server stopped by itself.
func (l *Life) Err() <-chan error { return l.err }

// Failed returns why the server stopped by itself, or nil.
func (l *Life) Failed() error {
	if cause := l.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// WhyNot returns why a server does not accept connections: ErrClosed, with the cause if it stopped
// by itself, or ErrNotStarted.
func (l *Life) WhyNot() error {
	select {
	case <-l.stopping:
		if cause := l.Failed(); cause != nil {
			return fmt.Errorf("%w: %w", ErrClosed, cause)
		}
		return ErrClosed
	default:
		return ErrNotStarted
	}
}
