// Package restv2 serves znodes over HTTP: /znodes/v2 and /identity/v2. openapi.json lists the
// requests.
//
// Each representation of a znode has its own ETag: see etag.go. A write needs If-Match: without it
// the answer is 428, after a conflict 412 with the present Stat. A child that the caller may not
// read has no Stat. A multi makes no ephemeral znodes; its problem has the index of the first
// failed operation.
//
// After the event reset, events may have been missed: the reader must read again. A reconnect with
// Last-Event-ID continues, on any member, if that one still remembers all changes since
// (docs/adr/0017-replay.md). A stream ends with the login of its reader.
package restv2

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// Root is the path of the root znode.
const Root = "/znodes/v2/"

// Handler serves /znodes/v2/.
type Handler struct {
	// Kind returns the kind of a znode that the protocol does not show: container, or ttl with its
	// time to live; otherwise "". The znode is the one that was created by czxid.
	Kind func(path string, czxid proto.Zxid) (kind string, ttlMs int64)
	// Streams bounds the streams of events.
	Streams *fair.Gauge
	// Session returns the client of a session of /sessions/v1 that the caller has made.
	Session func(r *http.Request, id string) (*client.Client, error)
}

// params are the parameters of a query, each of which may occur once.
type params struct {
	values url.Values
	err    error
}

// query returns the parameters of a request, which must be among those that are known.
func query(r *http.Request, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return params{}, answer.Bad("the query cannot be read: %v", err)
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return params{}, answer.Bad("the parameter %q is unknown here: allowed are %s", name, strings.Join(known, ", "))
		case len(all) > 1:
			return params{}, answer.Bad("the parameter %s occurs %d times", name, len(all))
		}
	}
	return params{values: values}, nil
}

// flag returns a parameter that is set by its name alone, or true or false.
func (p *params) flag(name string) bool {
	switch v := p.values.Get(name); {
	case !p.values.Has(name), v == "false":
		return false
	case v == "", v == "true":
		return true
	default:
		p.err = answer.Bad("the parameter %s is %q, allowed are true and false", name, v)
		return false
	}
}

// number returns a parameter from low to high, or def if it is missing.
func (p *params) number(name string, low, high, def int64) int64 {
	if !p.values.Has(name) {
		return def
	}
	n, err := strconv.ParseInt(p.values.Get(name), 10, 64)
	if err != nil || n < low || n > high {
		p.err = answer.Bad("the parameter %s is %q, allowed are %d to %d", name, p.values.Get(name), low, high)
	}
	return n
}

// newACL returns the parameter with the ACL of a new znode, nil for the server's default.
func (p *params) newACL() (list []proto.ACLJSON) {
	if text := p.values.Get("newAcl"); text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			p.err = answer.Bad("the parameter newAcl is no list of ACL entries: %v", err)
		}
	}
	return list
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, err := call.Path(r, Root)
	if err == nil {
		err = h.serve(w, r, path)
	}
	if err != nil {
		call.Fail(w, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, path string) error {
	c := call.Of(r)
	role := webrole.Read
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		role = webrole.Write
	}
	if err := c.May(role); err != nil {
		return err
	}
	cl, err := c.Client()
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return h.get(w, r, cl, path)
	case http.MethodPut:
		return h.put(w, r, cl, path)
	case http.MethodPost:
		return h.post(w, r, cl, path)
	case http.MethodDelete:
		return h.delete(w, r, cl, path)
	case http.MethodPatch:
		return h.patch(w, r, cl, path)
	}
	w.Header().Set("Allow", "GET, HEAD, PUT, POST, DELETE, PATCH")
	return answer.Errorf(http.StatusMethodNotAllowed, "%s is not a method for znodes", r.Method)
}

// stat returns a Stat of a znode that the caller may read, with its kind.
func (h *Handler) stat(path string, s proto.Stat) *Stat {
	kind, ttlMs := h.Kind(path, s.Czxid)
	return &Stat{s.JSON(), kind, ttlMs}
}

// Who is a caller as /identity/v2 shows the caller.
type Who struct {
	IDs       []ID   `json:"ids"`
	Role      string `json:"role"`
	Login     bool   `json:"login"`
	Anonymous bool   `json:"anonymous"`
	// Hint says how to get a role, if the caller has none.
	Hint   string     `json:"hint,omitempty"`
	Server ServerInfo `json:"server"`
}

// ServerInfo names the server that answers.
type ServerInfo struct {
	ID      int    `json:"id"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
}

// ID is an identity, without the hash of a password.
type ID struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// WhoIs describes a caller.
func WhoIs(s ServerInfo, g *access.Gate, c *access.Caller) *Who {
	who := &Who{Role: c.Role.String(), Anonymous: c.Anonymous(), Login: g.LoginPossible() && (c.Local || c.TLS), Server: s}
	for _, id := range c.All() {
		who.IDs = append(who.IDs, ID{id.Scheme, id.User()})
	}
	if c.Role == webrole.None {
		who.Hint = g.Remedy(c, webrole.Read)
	}
	return who
}
