// Package explore answers the requests of the explorer below /ui/api/. A list has a limit, and
// truncated if there is more.
//
// A handler reads and writes znodes through the session of its caller (call.Call.Client), so the
// ACLs decide. Facts about the server that tell of other clients (addresses, sessions, paths that
// are watched or hot) are for administrators, and for callers on this machine (insider). A handler
// bounds the znodes that it reads, the entries of its answer, and its time; at most maxLong
// requests that walk through subtrees run at once.
package explore

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// The bounds of requests.
const (
	maxLong     = 4               // of all callers
	maxLongEach = 3               // of a caller
	longTime    = 5 * time.Minute // of a request that walks through a subtree
	shortTime   = 20 * time.Second
	defaultRows = 1000
	maxRows     = 10_000
	maxWalk     = 1_000_000 // znodes of a search or comparison
	maxDelete   = 100_000   // znodes of a recursive delete
	maxImport   = 1 << 30   // bytes
)

// Deps are the dependencies of the handlers besides the call.
type Deps struct {
	Server *server.Server
	// MaxBody bounds bodies in bytes, except that of an import.
	MaxBody int64
	// Ask asks a member a four-letter word at its address for clients. nil: only this server is
	// shown.
	Ask func(ctx context.Context, address, word string) (string, error)
	// AskPort is the port of a member whose server line has none; 0: unknown.
	AskPort int
	// History has earlier states of znodes. nil: there is no archive.
	History history.Archive
}

type explorer struct {
	Deps
	others others
	long   *fair.Gauge // requests that walk through a subtree
}

// Register adds the handlers to mux. Requests have the role that their handlers demand; everybody
// who can reach the server gets as far as the handler.
func Register(mux *http.ServeMux, d Deps) {
	e := &explorer{Deps: d, others: others{ask: d.Ask, port: d.AskPort}, long: fair.NewGauge(maxLongEach, maxLong)}
	short := func(pattern string, f func(http.ResponseWriter, *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), shortTime)
			defer cancel()
			finish(w, r.WithContext(ctx), f)
		})
	}
	long := func(pattern string, f func(http.ResponseWriter, *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { e.walk(w, r, f) })
	}
	short("GET /ui/api/sessions", e.sessions)
	short("POST /ui/api/sessions/{id}/end", e.endSession)
	short("GET /ui/api/watches", e.watches)
	short("GET /ui/api/locks", e.locks)
	short("GET /ui/api/lock", e.lock)
	short("GET /ui/api/ensemble", e.ensemble)
	short("GET /ui/api/activity", e.activity)
	short("POST /ui/api/decode", e.decode)
	long("GET /ui/api/search", e.search)
	long("GET /ui/api/compare", e.compare)
	long("GET /ui/api/subtree", e.subtree)
	long("POST /ui/api/delete", e.delete)
	long("GET /ui/api/export", e.export)
	long("GET /ui/api/history", e.history)
	long("POST /ui/api/import", e.importLines)
}

// finish answers with the result of f, unless f has answered itself and returned nil.
func finish(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *http.Request) (any, error)) {
	v, err := f(w, r)
	if err == nil && v != nil {
		err = call.Of(r).JSON(w, v)
	}
	if err != nil {
		call.Fail(w, err)
	}
}

// walk runs a handler that walks through a subtree.
func (e *explorer) walk(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *http.Request) (any, error)) {
	leave, ok := e.long.Enter(call.Of(r).Caller.Account())
	if !ok {
		p := answer.Errorf(http.StatusTooManyRequests, "%d searches, exports or the like of a caller, and %d of all, may run: try again when one has ended", maxLongEach, maxLong)
		p.RetryAfter = 5
		call.Fail(w, p)
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), longTime)
	defer cancel()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(longTime + shortTime)) // a recorder of a test has none
	finish(&patientWriter{w, control}, r.WithContext(ctx), f)
}

// insider returns nil for callers that may see the actions of other clients.
func insider(c *call.Call) error {
	if c.Caller.Local && c.Caller.Role >= access.Read {
		return nil
	}
	return c.May(access.Admin)
}

// rows returns the parameter limit.
func rows(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultRows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, bad("limit is %.20q, allowed is a number from 1 to %d", text, maxRows)
	}
	return min(n, maxRows), nil
}

// pathOf returns a parameter that is the path of a znode; missing is its default, "" for none.
func pathOf(r *http.Request, name, missing string) (string, error) {
	p := r.URL.Query().Get(name)
	if p == "" {
		p = missing
	}
	if err := proto.ValidatePath(p); err != nil {
		return "", bad("%s: %v", name, err)
	}
	return p, nil
}

func bad(format string, args ...any) error {
	return answer.Errorf(http.StatusBadRequest, format, args...)
}

func idText(session int64) string { return fmt.Sprintf("0x%x", uint64(session)) }

func parseID(text string) (int64, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil || id == 0 {
		return 0, bad("session %.40q: allowed is an id in hexadecimal, such as 0x100000000000001", text)
	}
	return int64(id), nil
}
