package datatree

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// SessionInfo describes a session.
type SessionInfo struct {
	ID        proto.SessionID
	TimeoutMs int32
	// Zxid of the createSession or reattachSession that attached its connection.
	ConnEpoch     proto.Zxid
	Server        uint8 // member id of the server that holds this connection
	Passwd        [proto.PasswdBytes]byte
	NumEphemerals int
}

// Session returns a session, or false.
func (t *Tree) Session(id proto.SessionID) (SessionInfo, bool) {
	s := t.sessions[id]
	if s == nil {
		return SessionInfo{}, false
	}
	return s.info(), true
}

// Sessions returns all sessions, sorted by id.
func (t *Tree) Sessions() iter.Seq[SessionInfo] {
	return func(yield func(SessionInfo) bool) {
		for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
			if !yield(t.sessions[id].info()) {
				return
			}
		}
	}
}

// NumSessions returns the number of sessions.
func (t *Tree) NumSessions() int { return len(t.sessions) }

// Ephemerals returns the paths of the session's ephemerals that begin with prefix, sorted. The
// prefix is compared as a string; null, blank and "/", also between blanks, mean all. Source:
// FinalRequestProcessor, getEphemerals.
func (t *Tree) Ephemerals(session proto.SessionID, prefix *string) []string {
	paths := []string{}
	s := t.sessions[session]
	if s == nil {
		return paths
	}
	all := prefix == nil
	if !all {
		trimmed := strings.TrimFunc(*prefix, func(r rune) bool { return r <= ' ' }) // as Java's trim
		all = trimmed == "" || trimmed == "/"
	}
	for _, id := range s.ephemerals {
		if path := t.at(id).path(); all || strings.HasPrefix(path, *prefix) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// EphemeralsBySession returns the sessions that have ephemerals, sorted by id, each with its sorted
// paths.
func (t *Tree) EphemeralsBySession() iter.Seq2[proto.SessionID, []string] {
	return func(yield func(proto.SessionID, []string) bool) {
		for s := range t.Sessions() {
			if s.NumEphemerals > 0 && !yield(s.ID, t.Ephemerals(s.ID, nil)) {
				return
			}
		}
	}
}

func (s *session) info() SessionInfo {
	r := s.rec
	return SessionInfo{
		ID: r.id, TimeoutMs: r.timeoutMs, ConnEpoch: r.connEpoch, Server: r.server, Passwd: r.passwd,
		NumEphemerals: len(s.ephemerals),
	}
}
