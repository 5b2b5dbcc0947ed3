package server

import "errors"

// ErrNoLeader says that a server doesn't answer clients because it knows of no leader, or can't reach it, or has not caught up with it
// yet. That may pass.
var ErrNoLeader = errors.New("server: no leader, or not in touch with it")

// NotServing returns nil while the server answers clients. Otherwise it says why not: ErrNotStarted, ErrNoLeader, or ErrClosed, with
// the cause where the server stopped by itself.
func (s *Server) NotServing() error {
	switch {
	case !s.accepting.Load():
		return s.whyNot()
	case !s.ready():
		return ErrNoLeader
	}
	return nil
}

// Failed returns why the server stopped by itself, as when its disk fails; nil while it did not. It must still be closed then.
func (s *Server) Failed() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Digest returns the newest zxid and a hash of the state behind it: servers of an ensemble that are at the same zxid have the same.
func (s *Server) Digest() (zxid int64, digest uint64) {
	f := s.facts()
	return int64(f.zxid), f.digest
}

// TraceMask returns what the gtmk word does. Nothing else depends on it.
func (s *Server) TraceMask() int64 { return s.stats.traceMask.Load() }

// SetTraceMask sets the mask, like the stmk word.
func (s *Server) SetTraceMask(mask int64) { s.stats.traceMask.Store(mask) }
