package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/audit"
)

// lifecycle records how far a server is between New and the end of Close.
type lifecycle struct {
	mu              sync.Mutex // guards these
	started, closed bool
	starting        chan struct{}      // closed when Start is over; nil: Start was not called
	abortStart      context.CancelFunc // ends a Start that is still running

	cancel     context.CancelFunc // stops the node and the loops; set by Start before others can use it
	goroutines sync.WaitGroup

	stopOnce  sync.Once
	stopping  chan struct{}         // closed when the server begins to stop, also if it stops by itself
	stopped   chan struct{}         // closed at the end of Close
	cause     atomic.Pointer[error] // why the server stopped by itself
	err       chan error            // delivers the cause; capacity 1, because nobody may be listening
	accepting atomic.Bool           // the node is open, and connections are taken
	serving   atomic.Bool           // a leader was found once, and the server did not stop
}

func (l *lifecycle) init() {
	l.err, l.stopping, l.stopped = make(chan error, 1), make(chan struct{}), make(chan struct{})
}

// begin marks the server as started. Close cancels the context that begin returns, and waits until
// finished is called.
func (l *lifecycle) begin(ctx context.Context) (_ context.Context, finished func(), err error) {
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

// end ends a Start that is still running, and reports whether this is the first call.
func (l *lifecycle) end() (first bool) {
	l.mu.Lock()
	if starting := l.starting; starting != nil {
		l.abortStart()
		l.mu.Unlock()
		<-starting
		l.mu.Lock()
	}
	first = !l.closed
	l.closed = true
	// Not held during the shutdown: in a synctest bubble a goroutine that waits for a lock keeps
	// time from advancing, and the shutdown may wait for time to advance.
	l.mu.Unlock()
	return first
}

// stop releases all goroutines that wait for something that will not happen any more.
func (l *lifecycle) stop() {
	l.stopOnce.Do(func() { close(l.stopping) })
	l.accepting.Store(false) // after stopping is closed, so that whyNot knows the reason for it
}

// whyNot returns why a server does not accept connections: ErrClosed, with the cause if it stopped
// by itself, or ErrNotStarted.
func (l *lifecycle) whyNot() error {
	select {
	case <-l.stopping:
		if cause := l.cause.Load(); cause != nil {
			return fmt.Errorf("%w: %w", ErrClosed, *cause)
		}
		return ErrClosed
	default:
		return ErrNotStarted
	}
}

// Err delivers at most one error: the reason why the server stopped by itself. The server must
// still be closed.
func (s *Server) Err() <-chan error { return s.life.err }

// Failed returns why the server stopped by itself, for example because its disk failed, or nil. The
// server must still be closed then.
func (s *Server) Failed() error {
	if cause := s.life.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// fail makes the server stop serving: a write that is not on disk must not be acknowledged.
func (s *Server) fail(err error) {
	s.life.serving.Store(false)
	s.cfg.Logger.Error("server stopped serving", "error", err)
	s.life.cause.CompareAndSwap(nil, &err)
	s.life.stop()
	s.closeConns()
	select {
	case s.life.err <- err:
	default:
	}
}

// Close stops the server: it accepts no more connections, closes those that are open (their
// sessions live on), and closes the log. The leader of an ensemble first hands its leadership over.
// Close returns when every goroutine has ended. Close may be called several times.
func (s *Server) Close() error { return s.close(true) }

// Abort stops the server like Close, except that a leader does not hand over: to the other members,
// this looks like a crash.
func (s *Server) Abort() error { return s.close(false) }

func (s *Server) close(handOver bool) error {
	if !s.life.end() {
		<-s.life.stopped
		return nil
	}
	defer close(s.life.stopped)
	return s.shutdown(handOver)
}

func (s *Server) shutdown(handOver bool) (err error) {
	s.life.stop()
	if s.life.started {
		s.Audit(audit.Event{Operation: audit.ServerStop, Result: audit.Invoked})
	}
	if s.life.serving.Swap(false) && handOver && s.node.Status().Leading {
		// The others go on at once instead of after an election timeout.
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Tick)
		s.node.HandOver(ctx, 0)
		cancel()
	}
	if !s.life.started {
		err = closeUnused(s.cfg.Listener, s.cfg.SecureListener, s.cfg.PeerListener)
	}
	err = errors.Join(err, s.port.plain.Close(), s.port.secure.Close())
	s.closeConns()
	switch {
	case s.life.cancel != nil:
		s.life.cancel()
	case s.node != nil:
		err = errors.Join(err, s.node.Close())
	}
	s.life.goroutines.Wait()
	return err
}

// closeUnused closes listeners that a server was given and never used.
func closeUnused(listeners ...net.Listener) error {
	var errs []error
	for _, l := range listeners {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// closeConns closes every connection and lets no other in.
func (s *Server) closeConns() {
	for _, c := range s.conns.refuse() {
		c.Close()
	}
	s.conns.links.Stop()
	s.writes.Close()
}
