package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/server"
)

// connectionLists returns an object for each connection, the oldest first, with those of the secure
// port apart: all that is known if full is set, otherwise the fields of the command stats.
func connectionLists(s *server.Facts, full bool) object {
	list, secure := []object{}, []object{}
	for _, c := range s.Connections() {
		o := object{
			{"remote_socket_address", c.Remote},
			{"interest_ops", c.InterestOps()},
			{"outstanding_requests", c.Queued},
			{"packets_received", c.Received},
			{"packets_sent", c.Sent},
		}
		if full {
			var lastOp any // null until there is a session
			if c.Session != 0 {
				lastOp = c.LastOp
			}
			lastMs := int64(0)
			if !c.LastReply.IsZero() {
				lastMs = c.LastReply.UnixMilli()
			}
			o = append(o,
				field{"session_id", c.Session},
				field{"last_operation", lastOp},
				field{"established", c.Since.UnixMilli()},
				field{"session_timeout", c.Timeout.Milliseconds()},
				field{"last_cxid", c.LastXid},
				field{"last_zxid", c.LastZxid},
				field{"last_response_time", lastMs},
				field{"last_latency", c.LastLatency.Milliseconds()},
				field{"min_latency", c.MinMs},
				field{"avg_latency", int64(c.AvgMs)},
				field{"max_latency", c.MaxMs},
			)
		}
		if c.Secure {
			secure = append(secure, o)
		} else {
			list = append(list, o)
		}
	}
	return object{{"connections", list}, {"secure_connections", secure}}
}

// expireSession ends a session as if its client had not been heard from for too long. The parameter
// id is in hexadecimal, as the words show it, or as dump does, in 17 decimal digits or more.
func expireSession(h *handler, r *http.Request) (object, error) {
	text := r.URL.Query().Get("id")
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		id, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		return nil, &failedError{http.StatusBadRequest, fmt.Sprintf("id is %.64q; allowed: a session id in hexadecimal, such as 0x1000abc", text)}
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	switch err := h.server.ExpireSession(ctx, int64(id)); {
	case errors.Is(err, server.ErrNoSession):
		return nil, &failedError{http.StatusNotFound, fmt.Sprintf("there is no session 0x%x", id)}
	case err != nil:
		return nil, &failedError{http.StatusServiceUnavailable, err.Error()}
	}
	return object{{"session_id", fmt.Sprintf("0x%x", id)}}, nil
}

// endedSessions lists the ended sessions, the newest first: all, or those that the parameters
// session, address and path choose. path is an ephemeral znode that the end has deleted.
func endedSessions(h *handler, r *http.Request) (object, error) {
	q := r.URL.Query()
	limit := 1000
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, &failedError{http.StatusBadRequest, fmt.Sprintf("limit is %.64q; allowed: 1 or more", text)}
		}
		limit = n
	}
	list := h.server.Facts().EndedSessions(func(e *server.EndedSession) bool {
		return e.Matches(q.Get("session"), q.Get("address"), q.Get("path"))
	}, limit)
	return object{{"ended_sessions", append([]server.EndedSession{}, list...)}}, nil
}

func dump(s *server.Facts) object {
	expiries := object{}
	at := make(map[int64][]int64)
	for _, e := range slices.Concat(s.LocalExpiries(), s.Expiries()) {
		at[e.At.UnixMilli()] = append(at[e.At.UnixMilli()], e.Sessions...)
	}
	for _, ms := range slices.Sorted(maps.Keys(at)) {
		expiries = append(expiries, field{strconv.FormatInt(ms, 10), at[ms]})
	}
	return object{{"expiry_time_to_session_ids", expiries}, {"session_id_to_ephemeral_paths", bySession(s.Ephemerals())}}
}

func watches(s *server.Facts) object {
	return object{{"session_id_to_watched_paths", bySession(s.Watches())}}
}

func watchesByPath(s *server.Facts) object {
	sessions := make(map[string][]int64)
	for _, w := range s.Watches() {
		for _, path := range w.Paths {
			sessions[path] = append(sessions[path], w.Session)
		}
	}
	byPath := object{}
	for _, path := range slices.Sorted(maps.Keys(sessions)) {
		byPath = append(byPath, field{path, sessions[path]})
	}
	return object{{"path_to_session_ids", byPath}}
}

func watchSummary(s *server.Facts) object {
	conns, paths, watches := s.WatchCounts()
	return object{{"num_connections", conns}, {"num_paths", paths}, {"num_total_watches", watches}}
}

func bySession(list []server.SessionPaths) object {
	o := object{}
	for _, of := range list {
		o = append(o, field{strconv.FormatInt(of.Session, 10), of.Paths})
	}
	return o
}
