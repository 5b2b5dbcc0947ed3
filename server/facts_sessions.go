package server

import (
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// Sessions returns the sessions of the whole ensemble in ascending order of their ids.
func (s *Server) Sessions() []Session {
	s.treeMu.RLock()
	sessions := make([]Session, 0, s.tree.NumSessions())
	for info := range s.tree.Sessions() {
		sessions = append(sessions, Session{
			ID: int64(info.ID), Timeout: time.Duration(info.TimeoutMs) * time.Millisecond, Ephemerals: info.NumEphemerals,
		})
	}
	s.treeMu.RUnlock()
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for i := range sessions {
		sessions[i].Connected = s.conns.bySession[proto.SessionID(sessions[i].ID)] != nil
	}
	return sessions
}

// Ephemerals returns the ephemeral znodes of the whole ensemble by their owners, in ascending order
// of the session ids. The caller owns the result.
func (s *Server) Ephemerals() []SessionPaths {
	var all []SessionPaths
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	for id, paths := range s.tree.EphemeralsBySession() {
		all = append(all, SessionPaths{Session: int64(id), Paths: paths})
	}
	return all
}

// ZnodeKinds returns the containers and the znodes with a time to live, in no order. Clients cannot
// see these kinds. The caller owns the result.
func (s *Server) ZnodeKinds() []ZnodeKind {
	var all []ZnodeKind // a copy, so that nobody waits for a reader of the result
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	for path, ttlMs := range s.tree.ContainersAndTTLs() {
		all = append(all, ZnodeKind{Path: path, TTL: time.Duration(ttlMs) * time.Millisecond})
	}
	return all
}

// Expiries returns when sessions expire, the next first. Only the server that decides about expiry
// knows: a server alone, or the leader. All others return nil. The caller owns the result.
func (s *Server) Expiries() []Expiry {
	if !s.life.accepting.Load() {
		return nil
	}
	if mode := s.mode(); mode != facts.Standalone && mode != facts.Leader {
		return nil
	}
	s.expiry.mu.Lock()
	buckets := s.expiry.tracker.Buckets()
	s.expiry.mu.Unlock()
	all := make([]Expiry, 0, len(buckets))
	for i := range buckets {
		ids := make([]int64, 0, len(buckets[i].IDs))
		for _, id := range buckets[i].IDs {
			ids = append(ids, int64(id))
		}
		all = append(all, Expiry{At: buckets[i].At, Sessions: ids})
	}
	return all
}
