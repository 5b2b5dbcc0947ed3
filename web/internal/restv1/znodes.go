// Package restv1 serves ZooKeeper's old REST interface: /znodes/v1 and /sessions/v1. Source:
// zookeeper-contrib-rest/SPEC.txt, version 2, and the names of its Java implementation where they
// differ: an answer in JSON has both, in XML those of the implementation. Not there: JSONP, which
// would let every page read.
package restv1

import (
	"encoding/base64"
	"encoding/xml"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

const (
	root  = "/znodes/v1/"
	bytes = "application/octet-stream"
)

// Znodes serves /znodes/v1/.
type Znodes struct{ Sessions *Sessions }

type stat struct {
	Czxid          int64 `json:"czxid" xml:"czxid"`
	Mzxid          int64 `json:"mzxid" xml:"mzxid"`
	Ctime          int64 `json:"ctime" xml:"ctime"`
	Mtime          int64 `json:"mtime" xml:"mtime"`
	Version        int32 `json:"version" xml:"version"`
	Cversion       int32 `json:"cversion" xml:"cversion"`
	Aversion       int32 `json:"aversion" xml:"aversion"`
	EphemeralOwner int64 `json:"ephemeralOwner" xml:"ephemeralOwner"`
	DataLength     int32 `json:"dataLength" xml:"dataLength"`
	NumChildren    int32 `json:"numChildren" xml:"numChildren"`
	Pzxid          int64 `json:"pzxid" xml:"pzxid"`
}

type specStat struct {
	stat
	Length int32 `json:"datalength"` // as the specification spells it
}

// znode is the answer about a znode. XML has the elements of the Java implementation.
type znode struct {
	XMLName  xml.Name  `json:"-"`
	Path     string    `json:"path" xml:"path"`
	URI      string    `json:"uri" xml:"uri"`
	Encoding string    `json:"encoding,omitempty" xml:"-"`
	Data     *string   `json:"data,omitempty" xml:"-"`
	Data64   *string   `json:"data64,omitempty" xml:"data64,omitempty"`
	DataUTF8 *string   `json:"dataUtf8,omitempty" xml:"dataUtf8,omitempty"`
	Stat     *specStat `json:"stat,omitempty" xml:"-"`
	*stat
}

type children struct {
	XMLName  xml.Name `json:"-" xml:"child"`
	Path     string   `json:"path" xml:"path"`
	URI      string   `json:"uri" xml:"uri"`
	Template string   `json:"child_uri_template" xml:"child_uri_template"`
	Children []string `json:"children" xml:"children>child"`
}

type failure struct {
	XMLName xml.Name `json:"-" xml:"error"`
	Request string   `json:"request" xml:"request"`
	Message string   `json:"message" xml:"message"`
}

func newZnode(r *http.Request, path string, s proto.Stat) *znode {
	both := stat{
		int64(s.Czxid), int64(s.Mzxid), s.CtimeMs, s.MtimeMs, s.Version, s.Cversion, s.Aversion,
		int64(s.EphemeralOwner), s.DataLength, s.NumChildren, int64(s.Pzxid),
	}
	return &znode{XMLName: xml.Name{Local: "stat"}, Path: path, URI: uri(r, path), Stat: &specStat{both, s.DataLength}, stat: &both}
}

// base returns the address of the server as the caller names it.
func base(r *http.Request) string {
	return map[bool]string{true: "https://", false: "http://"}[r.TLS != nil] + r.Host
}

func uri(r *http.Request, path string) string {
	return base(r) + (&url.URL{Path: strings.TrimSuffix(root, "/") + path}).EscapedPath()
}

// ServeHTTP implements http.Handler.
func (h *Znodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		fail(w, r, call.ProblemOf(err))
	}
}

type parameters struct {
	path    string
	query   url.Values
	version int32
	client  *client.Client
}

func (h *Znodes) serve(w http.ResponseWriter, r *http.Request) (err error) {
	p := parameters{query: r.URL.Query(), version: client.AnyVersion}
	if p.path, err = call.Path(r, root); err != nil {
		return err
	}
	if v := p.query.Get("version"); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return answer.Errorf(http.StatusBadRequest, "%s bad version %s", p.path, v)
		}
		p.version = int32(n)
	}
	c, role := call.Of(r), webrole.Write
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		role = webrole.Read
	}
	if err := c.May(role); err != nil {
		return err
	}
	if id := p.query.Get("session"); id != "" {
		if p.client, err = h.Sessions.Get(r, id); err != nil {
			return answer.Errorf(http.StatusUnauthorized, "%s", printable.Error(err))
		}
	} else if p.client, err = c.Client(); err != nil {
		return err
	}
	if !wantsBytes(r) && !acceptsJSON(r) && !wantsXML(r) {
		return answer.Errorf(http.StatusNotAcceptable, "Accept must allow %s, %s or %s: there is no JSONP here", jsonType, xmlType, bytes)
	}
	switch r.Method {
	case http.MethodHead:
		return h.head(w, r, &p)
	case http.MethodGet:
		if p.query.Get("view") == "children" {
			return h.children(w, r, &p)
		}
		return h.get(w, r, &p)
	case http.MethodPut:
		return h.put(w, r, &p)
	case http.MethodPost:
		return h.post(w, r, &p)
	case http.MethodDelete:
		if err := p.client.Delete(r.Context(), p.path, p.version); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return notImplemented(r)
}

func notImplemented(r *http.Request) error {
	return answer.Errorf(http.StatusNotImplemented, "%s %s is not implemented", r.Method, r.URL.Path)
}

func (h *Znodes) head(w http.ResponseWriter, r *http.Request, p *parameters) error {
	_, ok, err := p.client.Exists(r.Context(), p.path, false)
	switch {
	case err != nil:
		return err
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case wantsBytes(r):
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

func (h *Znodes) get(w http.ResponseWriter, r *http.Request, p *parameters) error {
	data, s, err := p.client.Get(r.Context(), p.path, false)
	if err != nil {
		return err
	}
	leave, err := call.Of(r).Large(len(data))
	if err != nil {
		return err
	}
	defer leave()
	if wantsBytes(r) {
		w.Header().Set("Content-Type", bytes)
		w.Header().Set("Content-Disposition", "attachment")
		if data == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = w.Write(data) // the caller has gone
		return nil
	}
	z := newZnode(r, p.path, s)
	switch format := p.query.Get("dataformat"); {
	case format != "" && format != "base64" && format != "utf8":
		return answer.Errorf(http.StatusBadRequest, "the parameter dataformat is %q, allowed are base64 and utf8", format)
	case format == "utf8" && data != nil:
		text := string(data)
		z.Encoding, z.Data, z.DataUTF8 = "utf8", &text, &text
	case data != nil:
		text := base64.StdEncoding.EncodeToString(data)
		z.Encoding, z.Data, z.Data64 = "base64", &text, &text
	}
	return write(w, r, http.StatusOK, len(data), z)
}

func (h *Znodes) children(w http.ResponseWriter, r *http.Request, p *parameters) error {
	names, _, err := p.client.Children(r.Context(), p.path, false)
	if err != nil {
		return err
	}
	size := 0
	for _, name := range names {
		size += len(name) + len(`"",`)
	}
	leave, err := call.Of(r).Large(size)
	if err != nil {
		return err
	}
	defer leave()
	at := uri(r, p.path)
	return write(w, r, http.StatusOK, size, children{
		Path: p.path, URI: at, Template: strings.TrimSuffix(at, "/") + "/{child}", Children: append([]string{}, names...),
	})
}

// body returns the data of a write; null if the caller says so.
func (h *Znodes) body(w http.ResponseWriter, r *http.Request, p *parameters) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != bytes {
			return nil, answer.Errorf(http.StatusUnsupportedMediaType, "Content-Type is %q, it must be %s", kind, bytes)
		}
	}
	data, err := call.Of(r).ReadBody(w)
	if p.query.Get("null") == "true" {
		data = nil
	}
	return data, err
}

func (h *Znodes) put(w http.ResponseWriter, r *http.Request, p *parameters) error {
	data, err := h.body(w, r, p)
	if err != nil {
		return err
	}
	s, err := p.client.Set(r.Context(), p.path, data, p.version)
	if err != nil {
		return err
	}
	if wantsBytes(r) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return write(w, r, http.StatusOK, 0, newZnode(r, p.path, s))
}

func (h *Znodes) post(w http.ResponseWriter, r *http.Request, p *parameters) error {
	o := client.CreateOptions{Ephemeral: p.query.Get("ephemeral") == "true", Sequential: p.query.Get("sequence") == "true"}
	name := p.query.Get("name")
	switch op := p.query.Get("op"); {
	case op != "" && op != "create":
		return answer.Errorf(http.StatusBadRequest, "%s bad operation %s", p.path, op)
	case name == "" && !o.Sequential || strings.Contains(name, "/"):
		return answer.Errorf(http.StatusBadRequest, "the parameter name is %q: it must be the name of a child", name)
	case o.Ephemeral && p.query.Get("session") == "":
		return answer.Errorf(http.StatusBadRequest, "an ephemeral znode needs a session: create one with POST /sessions/v1?op=create&expire=SECONDS, and name it in the parameter session")
	}
	data, err := h.body(w, r, p)
	if err != nil {
		return err
	}
	path, _, err := p.client.Create(r.Context(), strings.TrimSuffix(p.path, "/")+"/"+name, data, o)
	if err != nil {
		problem := call.ProblemOf(err)
		if problem.Code == int32(proto.ErrNoNode) { // of the parent
			problem.Status = http.StatusConflict
		}
		return problem
	}
	w.Header().Set("Location", uri(r, path))
	if wantsBytes(r) {
		w.Header().Set("Content-Type", bytes)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, path) // the caller has gone
		return nil
	}
	return write(w, r, http.StatusCreated, 0, znode{XMLName: xml.Name{Local: "path"}, Path: path, URI: uri(r, path)})
}

func acceptsJSON(r *http.Request) bool {
	return len(r.Header.Values("Accept")) == 0 || names(r, jsonType) || names(r, "*/*") || names(r, "application/*")
}

// names reports whether the caller's Accept has this media type or range.
func names(r *http.Request, kind string) bool {
	all := strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",")
	return slices.ContainsFunc(all, func(want string) bool {
		want, _, _ = strings.Cut(want, ";")
		return strings.TrimSpace(want) == kind
	})
}

func wantsBytes(r *http.Request) bool { return names(r, bytes) }

func fail(w http.ResponseWriter, r *http.Request, p *answer.Problem) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	request := r.Method + " " + r.URL.Path
	if wantsBytes(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(p.Status)
		_, _ = io.WriteString(w, request+": "+p.Error()+"\n") // the caller has gone
		return
	}
	_ = write(w, r, p.Status, 0, failure{Request: request, Message: p.Error()}) // it has no value that fails
}
