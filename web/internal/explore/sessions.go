package explore

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// session is a session in JSON. The fields after Connected are known to its client's server.
type session struct {
	ID         string `json:"id"`
	TimeoutMs  int64  `json:"timeoutMs"`
	Ephemerals int    `json:"ephemerals"`
	Connected  bool   `json:"connected"` // to this server

	Address      string   `json:"address,omitempty"`
	Identities   []string `json:"identities,omitempty"`
	TLS          bool     `json:"tls,omitempty"`
	Heard        int64    `json:"heard,omitempty"` // Unix ms
	Watches      int      `json:"watches,omitempty"`
	AvgLatencyMs float64  `json:"avgLatencyMs,omitempty"`
}

func (e *explorer) sessions(q *request) (any, error) {
	limit, only := q.rows(), q.hex("id", q.query.Get("id"), 64, 0)
	conns := e.connections()
	known := e.server.Facts().Sessions()
	global := make(map[int64]bool, len(known))
	for _, s := range known {
		global[s.ID] = true
	}
	for id, c := range conns { // sessions that only this server knows
		if !global[id] {
			known = append(known, server.Session{ID: id, Timeout: c.Timeout, Connected: true})
		}
	}
	found := struct {
		Sessions  []*session `json:"sessions"`
		Total     int        `json:"total"`
		Truncated bool       `json:"truncated,omitempty"`
	}{Sessions: []*session{}, Total: len(known)}
	byID := make(map[int64]*session)
	for _, s := range known {
		if only != 0 && s.ID != only {
			continue
		}
		if len(found.Sessions) == limit {
			found.Truncated = true
			break
		}
		row := &session{ID: idText(s.ID), TimeoutMs: s.Timeout.Milliseconds(), Ephemerals: s.Ephemerals, Connected: s.Connected}
		if c := conns[s.ID]; c != nil {
			row.Connected, row.Address, row.Identities, row.TLS = true, c.Remote, c.Identities, c.TLS
			row.Heard, row.AvgLatencyMs = c.Heard.UnixMilli(), c.AvgMs
		}
		found.Sessions, byID[s.ID] = append(found.Sessions, row), row
	}
	e.server.Facts().FindWatches(func(id int64, path string) bool {
		s := byID[id]
		if s != nil && path != "" {
			s.Watches++
		}
		return s != nil && path == "" // only counted
	}, 0)
	return found, nil
}

func (e *explorer) connections() map[int64]*server.Connection {
	all := make(map[int64]*server.Connection)
	list := e.server.Facts().Connections()
	for i := range list {
		if list[i].Session != 0 {
			all[list[i].Session] = &list[i]
		}
	}
	return all
}

// endSession ends a session as if its client had not been heard from for too long.
func (e *explorer) endSession(q *request) (any, error) {
	id := q.hex("id", q.PathValue("id"), 64, 0)
	if q.err != nil {
		return nil, q.err
	}
	err := e.server.ExpireSession(q.Context(), id)
	code := proto.OK
	if err != nil {
		code = proto.ErrSystemError
	}
	q.Audit("end session "+idText(id), code)
	if errors.Is(err, server.ErrNoSession) {
		return nil, answer.Errorf(http.StatusNotFound, "there is no session %s (any more)", idText(id))
	}
	return map[string]string{"ended": idText(id)}, err
}

const maxDeleted = 10

// ended answers with the sessions that this server saw end or refused, the newest first: those that
// session, address and path choose, of which the story or a deleted path contains filter.
func (e *explorer) ended(q *request) (any, error) {
	limit, get := q.rows(), q.query.Get
	filter := get("filter")
	contains := func(text string) bool { return strings.Contains(text, filter) }
	list := e.server.Facts().EndedSessions(func(s *server.EndedSession) bool {
		if !s.Matches(get("session"), get("address"), get("path")) {
			return false
		}
		_, story := s.Verdict()
		return contains(story) || slices.ContainsFunc(s.Ephemerals, contains)
	}, limit+1)
	found := struct {
		Ended     []server.EndedSession `json:"ended"`
		Truncated bool                  `json:"truncated,omitempty"`
	}{append([]server.EndedSession{}, list[:min(len(list), limit)]...), len(list) > limit}
	for i := range found.Ended {
		s := &found.Ended[i]
		shown := min(len(s.Ephemerals), maxDeleted)
		s.Ephemerals, s.MoreEphemerals = s.Ephemerals[:shown], s.MoreEphemerals+len(s.Ephemerals)-shown
	}
	return found, nil
}

type watchRow struct {
	Path    string   `json:"path"`
	Session string   `json:"session"`
	Address string   `json:"address"`
	Kinds   []string `json:"kinds"`
	TLS     bool     `json:"tls,omitempty"`
}

// watches answers with the watches here, of a path (and below: path=/a/*), session, address.
func (e *explorer) watches(q *request) (any, error) {
	limit, only := q.rows(), q.hex("session", q.query.Get("session"), 64, 0)
	want, address := q.query.Get("path"), q.query.Get("address")
	below, subtree := strings.CutSuffix(want, "/*")
	conns := e.connections()
	list, more := e.server.Facts().FindWatches(func(id int64, path string) bool {
		c := conns[id]
		if path == "" {
			return (only == 0 || id == only) && (address == "" || c != nil && isAddress(c.Remote, address))
		}
		return want == "" || path == want || subtree && (path == below || strings.HasPrefix(path, below+"/"))
	}, limit)
	_, paths, watches := e.server.Facts().WatchCounts()
	found := struct {
		Watches   []watchRow `json:"watches"`
		Truncated bool       `json:"truncated,omitempty"`
		Paths     int        `json:"paths"` // of data, persistent and recursive watches of all clients
		All       int        `json:"all"`
	}{Watches: []watchRow{}, Truncated: more, Paths: paths, All: watches}
	for _, w := range list {
		row := watchRow{Path: w.Path, Session: idText(w.Session), Kinds: w.Kinds}
		if c := conns[w.Session]; c != nil {
			row.Address, row.TLS = c.Remote, c.TLS
		}
		found.Watches = append(found.Watches, row)
	}
	return found, nil
}

// isAddress reports whether remote, host:port, is the address with or without a port.
func isAddress(remote, address string) bool {
	host, _, err := net.SplitHostPort(remote)
	return remote == address || err == nil && host == address
}
