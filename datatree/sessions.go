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

// setSession adds a session, or replaces its record. The digest of rec need not be set.
func (st *state) setSession(rec sessionRecord) {
	s := st.sessions[rec.id]
	if s == nil {
		s = &session{}
		st.sessions[rec.id] = s
	} else {
		st.digest -= s.rec.digest
	}
	s.rec = st.sealSession(rec)
	st.digest += s.rec.digest
	st.dirty.noteSession(rec.id, s.rec)
}

// dropSession removes a session, which must own no znodes.
func (st *state) dropSession(id proto.SessionID) {
	st.digest -= st.sessions[id].rec.digest
	delete(st.sessions, id)
	st.dirty.noteSession(id, nil)
}

// Session returns a session, or false.
func (st *state) Session(id proto.SessionID) (SessionInfo, bool) {
	s := st.sessions[id]
	if s == nil {
		return SessionInfo{}, false
	}
	return s.info(), true
}

// Sessions returns all sessions, sorted by id.
func (st *state) Sessions() iter.Seq[SessionInfo] {
	return func(yield func(SessionInfo) bool) {
		for _, id := range slices.Sorted(maps.Keys(st.sessions)) {
			if !yield(st.sessions[id].info()) {
				return
			}
		}
	}
}

// NumSessions returns the number of sessions.
func (st *state) NumSessions() int { return len(st.sessions) }

// Ephemerals returns the paths of the session's ephemerals that begin with prefix, sorted. The
// prefix is compared as a string; null, blank and "/", also between blanks, mean all. Source:
// FinalRequestProcessor, getEphemerals.
func (st *state) Ephemerals(session proto.SessionID, prefix *string) []string {
	paths := []string{}
	s := st.sessions[session]
	if s == nil {
		return paths
	}
	all := prefix == nil
	if !all {
		trimmed := strings.TrimFunc(*prefix, func(r rune) bool { return r <= ' ' }) // as Java's trim
		all = trimmed == "" || trimmed == "/"
	}
	for _, id := range s.ephemerals {
		if path := st.at(id).path(); all || strings.HasPrefix(path, *prefix) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// EphemeralsBySession returns sessions with ephemerals, sorted by id, each with sorted paths.
func (st *state) EphemeralsBySession() iter.Seq2[proto.SessionID, []string] {
	return func(yield func(proto.SessionID, []string) bool) {
		for s := range st.Sessions() {
			if s.NumEphemerals > 0 && !yield(s.ID, st.Ephemerals(s.ID, nil)) {
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
