// Package call has the context of a request for package web: its caller, and the caller's session.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Call is a request that is being answered. Only its handler's goroutine may use it.
type Call struct {
	Caller access.Caller

	request *http.Request
	gate    *access.Gate
	pool    *Pool
	session *Session // nil: not asked for yet
}

type key struct{}

// Begin returns a request whose handler finds the Call with Of. Call end after the handler.
func Begin(r *http.Request, who access.Caller, g *access.Gate, p *Pool) (with *http.Request, end func()) {
	c := &Call{Caller: who, gate: g, pool: p}
	c.request = r.WithContext(context.WithValue(r.Context(), key{}, c))
	return c.request, c.end
}

// Of returns the Call of a request, which handlers of package web always have.
func Of(r *http.Request) *Call { return r.Context().Value(key{}).(*Call) }

func (c *Call) end() {
	if c.session != nil {
		c.session.Release()
	}
}

// Session returns the caller's session while the request lasts. May must have allowed something.
func (c *Call) Session() (*Session, error) {
	if c.session != nil {
		return c.session, nil
	}
	if err := c.May(webrole.Read); err != nil {
		return nil, err
	}
	s, err := c.pool.Get(c.request.Context(), &c.Caller)
	c.session = s
	return s, err
}

// Client is Session for requests alone.
func (c *Call) Client() (*client.Client, error) {
	s, err := c.Session()
	if err != nil {
		return nil, err
	}
	return s.Client, nil
}

// May returns nil if the caller has the role, otherwise a Problem that says how to get it. A
// refused write is in the audit log.
func (c *Call) May(role webrole.Role) error {
	if c.Caller.Role >= role {
		return nil
	}
	status := http.StatusForbidden
	if c.Caller.Anonymous() {
		status = http.StatusUnauthorized
	}
	if role > webrole.Read {
		c.Audit(c.request.Method+" "+c.request.URL.Path, proto.ErrNoAuth)
	}
	return answer.Errorf(status, "this needs the role %v: %s", role, c.gate.Remedy(&c.Caller, role))
}

// heavyBytes is the size from which work takes so long that it needs a slot.
const heavyBytes = 32 << 10

// Heavy runs f, which works on this many bytes and must not wait. Few run at once, so that other
// clients of the server need not wait behind REST. If the request ends first, f has not run.
func (c *Call) Heavy(bytes int, f func() error) error {
	if bytes < heavyBytes {
		return f()
	}
	select {
	case c.pool.heavy <- struct{}{}:
		defer func() { <-c.pool.heavy }()
		return f()
	case <-c.request.Context().Done():
		return c.request.Context().Err()
	}
}

// largeBytes is the size of a large answer, which takes memory until its reader has read it.
const largeBytes = 128 << 10

// Large returns a function to call when this many bytes are written, or a Problem if many are.
func (c *Call) Large(bytes int) (leave func(), err error) {
	if bytes < largeBytes {
		return func() {}, nil
	}
	leave, ok := c.pool.large.Enter(c.Caller.Account())
	if !ok {
		return nil, answer.Busy(1, "%d large answers of a caller, and %d of all, may be under way", maxLargeEach, maxLarge)
	}
	return leave, nil
}

// JSON answers with a value that may be large. After an error nothing is written.
func (c *Call) JSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	leave, err := c.Large(len(b))
	if err != nil {
		return err
	}
	defer leave()
	answer.Encoded(w, http.StatusOK, "application/json", b)
	return nil
}

// LoggedIn reports whether the caller is still logged in, for answers that take long.
func (c *Call) LoggedIn() bool { return c.gate.LoggedIn(&c.Caller) }

// maxDetail bounds an event's detail: strangers' long paths should not soon rotate the log away.
const maxDetail = 1 << 10

// Audit records an action of a caller that is no request of the session: the server records those.
func (c *Call) Audit(detail string, code proto.ErrCode) {
	c.gate.Audit(audit.Event{
		Operation: audit.Admin, Result: audit.ResultOf(code), Err: code, IDs: c.Caller.All(),
		Client: net.JoinHostPort(c.Caller.Host, "0"), Origin: access.Origin, TLS: c.Caller.TLS,
		Detail: printable.Shortened(detail, maxDetail),
	})
}

// ReadBody returns the body of the request. An absent body is empty.
func (c *Call) ReadBody(w http.ResponseWriter) ([]byte, error) {
	return io.ReadAll(Body(w, c.request, c.pool.MaxBody))
}

// Body returns the body of a request, of this many bytes at most. A client that stops is a Problem.
func Body(w http.ResponseWriter, r *http.Request, most int64) io.Reader {
	return body{http.MaxBytesReader(w, r.Body, most)}
}

type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = answer.Errorf(http.StatusRequestTimeout, "the body of the request did not come in time")
	}
	return n, err
}

// History returns the archive if there is one and the caller may read the znode now, if it exists.
// It fills in the identities, which the archive compares with the ACL of each earlier time.
func (c *Call) History(q *history.Query) (history.Archive, error) {
	if c.pool.History == nil {
		return nil, answer.Errorf(http.StatusNotImplemented,
			"this server has no archive, which keeps earlier states: gozkd.archive.url configures one, except with --ensemble. gozkd history prints the changes in the log of a data directory")
	}
	zk, err := c.Client()
	if err != nil {
		return nil, err
	}
	q.IDs = c.Caller.All()
	_, _, err = zk.Exists(c.request.Context(), q.Path, false)
	return c.pool.History, err
}
