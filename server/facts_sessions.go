package server

import (
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/session"
)

// Sessions returns the sessions that the whole ensemble knows, in ascending order of their ids.
func (f *Facts) Sessions() []facts.Session {
	f.state.RLock()
	sessions := make([]Session, 0, f.state.tree.NumSessions())
	for info := range f.state.tree.Sessions() {
		sessions = append(sessions, Session{
			ID: int64(info.ID), Timeout: time.Duration(info.TimeoutMs) * time.Millisecond, Ephemerals: info.NumEphemerals,
		})
	}
	f.state.RUnlock()
	f.conns.mu.Lock()
	defer f.conns.mu.Unlock()
	for i := range sessions {
		sessions[i].Connected = f.conns.bySession[proto.SessionID(sessions[i].ID)] != nil
	}
	return sessions
}

// Ephemerals returns the ephemeral znodes of the whole ensemble by their owners, in ascending order
// of the session ids. The caller owns the result.
func (f *Facts) Ephemerals() []facts.SessionPaths {
	var all []SessionPaths
	f.state.RLock()
	defer f.state.RUnlock()
	for id, paths := range f.state.tree.EphemeralsBySession() {
		all = append(all, SessionPaths{Session: int64(id), Paths: paths})
	}
	return all
}

// ZnodeKinds returns the containers and the znodes with a time to live, in no order. Clients cannot
// see these kinds. The caller owns the result.
func (f *Facts) ZnodeKinds() []facts.ZnodeKind {
	var all []ZnodeKind // a copy, so that nobody waits for a reader of the result
	f.state.RLock()
	defer f.state.RUnlock()
	for path, ttlMs := range f.state.tree.ContainersAndTTLs() {
		all = append(all, ZnodeKind{Path: path, TTL: time.Duration(ttlMs) * time.Millisecond})
	}
	return all
}

// Expiries returns when sessions expire, the next first. Only the server that decides about expiry
// knows: a standalone server, or the leader. All others return nil. The caller owns the result.
func (f *Facts) Expiries() []facts.Expiry {
	if !f.life.Accepting.Load() || !slices.Contains([]string{facts.Standalone, facts.Leader}, f.mode()) {
		return nil
	}
	return expiriesOf(f.sessions.expiry.Expiries())
}

// LocalExpiries returns when the sessions that only this server knows expire, the next first, or
// nil if this server opens no such sessions. The caller owns the result.
func (f *Facts) LocalExpiries() []facts.Expiry {
	if !f.life.Accepting.Load() || !f.cfg.LocalSessions && !f.leader.readOnly.Load() || f.alone() {
		return nil
	}
	return expiriesOf(f.conns.locals.Expiries())
}

func expiriesOf(buckets []session.Bucket) []Expiry {
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
