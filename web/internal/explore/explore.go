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
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
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

// AskFunc asks a member a four-letter word at its clients' address.
type AskFunc func(ctx context.Context, address, word string) (string, error)

type explorer struct {
	server  *server.Server
	others  others
	samples *past
	long    *fair.Gauge // requests that walk through a subtree
}

// request is one that its caller may send. Its methods note in err that a parameter is malformed:
// then err is the answer, whatever the handler returns.
type request struct {
	*http.Request
	*call.Call
	w     http.ResponseWriter
	query url.Values
	err   error
}

// handler returns the answer, which becomes JSON, or nil after it has answered itself.
type handler func(*request) (any, error)

// permission returns nil for callers who may send a request.
type permission func(*call.Call) error

func reader(c *call.Call) error { return c.May(webrole.Read) }
func writer(c *call.Call) error { return c.May(webrole.Write) }
func admin(c *call.Call) error  { return c.May(webrole.Admin) }

// insider is for callers who may see the actions of other clients.
func insider(c *call.Call) error {
	if isInsider(c) {
		return nil
	}
	return admin(c)
}

func isInsider(c *call.Call) bool {
	return c.Caller.Role >= webrole.Admin || c.Caller.Local && c.Caller.Role >= webrole.Read
}

// Register adds the handlers to mux; stop must be called before s is closed. Without ask only s is
// shown. port is that of a member whose server line has none; 0: unknown.
func Register(mux *http.ServeMux, s *server.Server, ask AskFunc, port int) (stop func()) {
	e := &explorer{server: s, samples: newPast(s), others: others{ask: ask, port: port}}
	e.long = fair.NewGauge(maxLongEach, maxLong)
	short := func(pattern string, may permission, f handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { serve(w, r, shortTime, may, f) })
	}
	long := func(pattern string, may permission, f handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { e.walk(w, r, may, f) })
	}
	short("GET /ui/api/sessions", insider, e.sessions)
	short("GET /ui/api/ended", insider, e.ended)
	short("POST /ui/api/sessions/{id}/end", admin, e.endSession)
	short("GET /ui/api/watches", insider, e.watches)
	short("GET /ui/api/locks", reader, e.locks)
	short("GET /ui/api/lock", reader, e.lock)
	short("GET /ui/api/ensemble", reader, e.ensemble)
	short("GET /ui/api/activity", reader, e.activity)
	short("GET /ui/api/past", reader, e.pastHour)
	short("POST /ui/api/decode", reader, e.decode)
	long("GET /ui/api/search", reader, e.search)
	long("GET /ui/api/compare", reader, e.compare)
	long("GET /ui/api/subtree", reader, e.subtree)
	long("POST /ui/api/delete", writer, e.delete)
	long("GET /ui/api/export", reader, e.export)
	long("GET /ui/api/history", reader, e.history)
	long("POST /ui/api/import", writer, e.importLines)
	return e.samples.stop
}

// serve answers with the result of f, which has this much time.
func serve(w http.ResponseWriter, r *http.Request, limit time.Duration, may permission, f handler) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	q := &request{Request: r.WithContext(ctx), Call: call.Of(r), w: w, query: r.URL.Query()}
	var v any
	err := may(q.Call)
	if err == nil {
		v, err = f(q)
		err = cmp.Or(q.err, err)
	}
	if err == nil && v != nil {
		err = q.JSON(w, v)
	}
	if err != nil {
		call.Fail(w, err)
	}
}

func (e *explorer) walk(w http.ResponseWriter, r *http.Request, may permission, f handler) {
	leave, ok := e.long.Enter(call.Of(r).Caller.Account())
	if !ok {
		call.Fail(w, answer.Busy(5, "%d searches, exports or the like of a caller, and %d of all, may run: "+
			"try again when one has ended", maxLongEach, maxLong))
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(longTime + shortTime)) // a recorder of a test has none
	serve(&patientWriter{w, control}, r, longTime, may, f)
}

func (q *request) bad(format string, args ...any) { q.err = answer.Bad(format, args...) }

func (q *request) rows() int {
	text := q.query.Get("limit")
	if text == "" {
		return defaultRows
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		q.bad("limit is %.20q, allowed is a number from 1 to %d", text, maxRows)
	}
	return min(max(n, 1), maxRows)
}

// znode returns a parameter that is the path of a znode; missing is its default, "" for none.
func (q *request) znode(name, missing string) string {
	p := cmp.Or(q.query.Get(name), missing)
	if err := proto.ValidatePath(p); err != nil {
		q.bad("%s: %s", name, printable.Error(err))
	}
	return p
}

// client returns the caller's session for requests, unless a parameter is malformed.
func (q *request) client() (*client.Client, error) {
	if q.err != nil {
		return nil, q.err
	}
	return q.Client()
}

func idText(session int64) string { return fmt.Sprintf("0x%x", uint64(session)) }

// hex returns the zxid or the id that a parameter has as idText writes it, def for "".
func (q *request) hex(name, text string, bits int, def int64) int64 {
	if text == "" {
		return def
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, bits)
	if err != nil || n == 0 {
		q.bad("%s is %.40q, allowed is a zxid or the id of a session, in hexadecimal, such as 0x100000007", name, text)
	}
	return int64(n)
}
