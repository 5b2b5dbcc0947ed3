package server

import "time"

// Ephemerals returns who owns which ephemeral znodes in the whole ensemble, by rising session id. The caller owns the result.
func (s *Server) Ephemerals() []SessionPaths {
	var all []SessionPaths
	s.tree.RLock()
	defer s.tree.RUnlock()
	for id, paths := range s.state.EphemeralsBySession() {
		all = append(all, SessionPaths{int64(id), paths})
	}
	return all
}

// Expiry is a moment and the sessions that expire then if nothing more is heard from their clients.
type Expiry struct {
	At       time.Time
	Sessions []int64 // by rising id
}

// Expiries returns when sessions expire, the next first, as the server knows that decides about it: a server alone, or the
// leader. All others return nil. The caller owns the result.
func (s *Server) Expiries() []Expiry {
	if !s.accepting.Load() {
		return nil
	}
	if mode := s.mode(); mode != modeStandalone && mode != modeLeader {
		return nil
	}
	s.trackMu.Lock()
	buckets := s.tracker.Buckets()
	s.trackMu.Unlock()
	all := make([]Expiry, 0, len(buckets))
	for i := range buckets {
		ids := make([]int64, 0, len(buckets[i].IDs))
		for _, id := range buckets[i].IDs {
			ids = append(ids, int64(id))
		}
		all = append(all, Expiry{buckets[i].At, ids})
	}
	return all
}
