package server

import (
	"context"
	"errors"
	"net"

	"github.com/gozkd/gozkd/audit"
)

// Err delivers at most one error: why the server stopped by itself. It must still be closed.
func (s *Server) Err() <-chan error { return s.life.Err() }

// Failed returns why the server stopped by itself, for example because its disk failed, or nil. The
// server must still be closed then.
func (s *Server) Failed() error { return s.life.Failed() }

// fail makes the server stop serving: a write that is not on disk must not be acknowledged.
func (s *Server) fail(err error) {
	s.life.Fail(err, func() {
		s.cfg.Logger.Error("server stopped serving", "error", err)
		s.closeConns()
	})
}

// Close stops the server: it accepts no more connections, closes those that are open (their
// sessions live on), and closes the log. The leader of an ensemble first hands its leadership over.
// Requests under way are answered if that takes no longer than 100 ms.
// Close returns when every goroutine has ended. Close may be called several times.
func (s *Server) Close() error { return s.close(true) }

// Abort stops the server like Close, except that a leader does not hand over: to the other members,
// this looks like a crash.
func (s *Server) Abort() error { return s.close(false) }

func (s *Server) close(handOver bool) error {
	return s.life.End(func(started bool) error { return s.shutdown(started, handOver) })
}

func (s *Server) shutdown(started, handOver bool) (err error) {
	s.life.Stop()
	if started {
		s.Audit(audit.Event{Operation: audit.ServerStop, Result: audit.Invoked})
	}
	if s.life.Serving.Swap(false) && handOver && s.node.Status().Leading {
		// The others go on at once instead of after an election timeout.
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Tick)
		s.node.HandOver(ctx, 0)
		cancel()
	}
	for _, l := range []net.Listener{s.cfg.Listener, s.cfg.SecureListener, s.cfg.PeerListener} {
		if l != nil && !started {
			err = errors.Join(err, l.Close())
		}
	}
	err = errors.Join(err, s.ports.plain.Close(), s.ports.secure.Close())
	if handOver {
		s.conns.awaitAnswers()
	}
	s.closeConns()
	switch {
	case s.life.Cancel != nil:
		s.life.Cancel()
	case s.node != nil:
		err = errors.Join(err, s.node.Close())
	}
	s.life.Goroutines.Wait()
	return err
}

func (s *Server) closeConns() {
	s.conns.refuse()
	s.conns.drop("the server stopped")
	s.conns.links.Stop()
	s.writes.Close()
}
