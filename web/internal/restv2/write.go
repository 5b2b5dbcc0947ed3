package restv2

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// put sets data or an ACL, or creates a znode.
func (h *Handler) put(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "acl")
	if err != nil {
		return err
	}
	acl := q.flag("acl")
	if q.err != nil {
		return q.err
	}
	creates := r.Header.Get("If-None-Match") == "*" && !acl
	var want condition
	if !creates {
		if want, err = ifMatch(r, acl); err != nil {
			return err
		}
	}
	data, err := h.body(w, r)
	if err != nil {
		return err
	}
	if err := h.demand(r, cl, path, want); err != nil {
		return err
	}
	stat, status := proto.Stat{}, http.StatusOK
	switch {
	case creates:
		status = http.StatusCreated
		_, stat, err = cl.Create(r.Context(), path, data, client.CreateOptions{})
		if p := call.ProblemOf(err); err != nil && p.Code == int32(proto.ErrNodeExists) {
			p.Status, p.Title = http.StatusPreconditionFailed, http.StatusText(http.StatusPreconditionFailed)
			err = p
		}
	case acl:
		return h.putACL(w, r, cl, path, data, want.version)
	default:
		stat, err = cl.Set(r.Context(), path, data, want.version)
	}
	if err != nil {
		return h.conflict(r, cl, path, err)
	}
	return h.written(w, status, dataTag(&stat), path, stat)
}

// written answers a write with the znode after it.
func (h *Handler) written(w http.ResponseWriter, status int, etag, path string, stat proto.Stat) error {
	w.Header().Set("ETag", etag)
	answer.JSON(w, status, znode{Path: path, Stat: h.stat(path, stat)})
	return nil
}

func (h *Handler) putACL(w http.ResponseWriter, r *http.Request, cl *client.Client, path string, body []byte, version int32) error {
	var given struct {
		ACL []proto.ACLJSON `json:"acl"`
	}
	var err error
	if late := call.Of(r).Heavy(len(body), func() { err = decodeJSON(body, &given) }); late != nil || err != nil {
		return cmp.Or(late, err)
	}
	acl, err := proto.ACLFromJSON(given.ACL)
	if err != nil {
		return answer.Bad("acl: %v", err)
	}
	stat, err := cl.SetACL(r.Context(), path, acl, version)
	if err != nil {
		return h.conflict(r, cl, path, err)
	}
	return h.written(w, http.StatusOK, aclTag(&stat), path, stat)
}

// post creates a child.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "name", "mode", "sequential", "ttl", "session")
	if err != nil {
		return err
	}
	o, err := createOptions(q.values.Get("mode"), q.flag("sequential"), q.number("ttl", 1, maxTTL, 0), nil)
	if err = errors.Join(q.err, err); err != nil {
		return err
	}
	name := q.values.Get("name")
	if name == "" && !o.Sequential || strings.Contains(name, "/") {
		return answer.Bad("the parameter name is %q: it must be the name of a child", name)
	}
	if id := q.values.Get("session"); id != "" {
		if cl, err = h.Session(r, id); err != nil {
			return err
		}
	} else if o.Ephemeral {
		return answer.Bad("an ephemeral znode needs a session: create one with POST /sessions/v1, and name it in the parameter session")
	}
	data, err := h.body(w, r)
	if err != nil {
		return err
	}
	created, stat, err := cl.Create(r.Context(), strings.TrimSuffix(path, "/")+"/"+name, data, o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", httplocal.Prefix(r)+Root+escape(created))
	return h.written(w, http.StatusCreated, dataTag(&stat), created, stat)
}

// escape returns a znode's path without its first slash, as a part of a URL.
func escape(path string) string {
	names := strings.Split(path[1:], "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return strings.Join(names, "/")
}

func (h *Handler) delete(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	if _, err := query(r); err != nil {
		return err
	}
	want, err := ifMatch(r, false)
	if err == nil {
		err = h.demand(r, cl, path, want)
	}
	if err != nil {
		return err
	}
	if err := cl.Delete(r.Context(), path, want.version); err != nil {
		return h.conflict(r, cl, path, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxOps bounds the operations of a multi.
const maxOps = 1000

type result struct {
	Path string `json:"path,omitempty"` // of a created znode
	Stat *Stat  `json:"stat,omitempty"`
}

// patch carries out all operations or none.
func (h *Handler) patch(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	if path != "/" {
		return answer.Bad("a multi is a PATCH of %s", Root)
	}
	if _, err := query(r); err != nil {
		return err
	}
	body, err := h.body(w, r)
	if err != nil {
		return err
	}
	var given []operation
	if late := call.Of(r).Heavy(len(body), func() { err = decodeJSON(body, &given) }); late != nil || err != nil {
		return cmp.Or(late, err)
	}
	if len(given) > maxOps {
		return answer.Bad("a multi of %d operations, allowed are %d", len(given), maxOps)
	}
	ops := make([]client.Op, len(given))
	for i := range given {
		if ops[i], err = given[i].op(); err != nil {
			return indexed(call.ProblemOf(err), i, &given[i])
		}
	}
	results, err := cl.Multi(r.Context(), ops...)
	if err != nil {
		p := call.ProblemOf(err)
		for i, res := range results {
			if code := call.ProblemOf(res.Err); res.Err != nil && code.Code != int32(proto.ErrRuntimeInconsistency) {
				return indexed(p, i, &given[i])
			}
		}
		return p
	}
	list := make([]result, len(results))
	for i, res := range results {
		list[i].Path = res.Path
		if res.Stat.Czxid != 0 {
			list[i].Stat = h.stat(cmp.Or(res.Path, given[i].Path), res.Stat)
		}
	}
	answer.JSON(w, http.StatusOK, struct {
		Results []result `json:"results"`
	}{list})
	return nil
}

func indexed(p *answer.Problem, i int, o *operation) error {
	p.Index, p.Path = &i, o.Path
	return p
}

// Stat is a Stat in JSON.
type Stat struct {
	proto.StatJSON
	Kind  string `json:"kind,omitempty"` // container or ttl
	TTLMs int64  `json:"ttlMs,omitempty"`
}

// operation is an operation of PATCH.
type operation struct {
	Op         string          `json:"op"`
	Path       string          `json:"path"`
	Data       []byte          `json:"data"`
	Version    *int32          `json:"version"`
	Mode       string          `json:"mode"`
	Sequential bool            `json:"sequential"`
	TTL        int64           `json:"ttl"`
	ACL        []proto.ACLJSON `json:"acl"`
}

// op returns the operation as the client has it.
func (o *operation) op() (op client.Op, err error) {
	if o.Op != "create" && o.Version == nil {
		return op, answer.Bad("%s has no version: name the version that you saw, or -1 for any", o.Op)
	}
	switch o.Op {
	case "create":
		options, err := createOptions(o.Mode, o.Sequential, o.TTL, o.ACL)
		if options.Ephemeral {
			return op, answer.Bad("a multi cannot create ephemeral znodes: they need a session of their own, see POST")
		}
		return client.CreateOp(o.Path, o.Data, options), err
	case "set":
		return client.SetOp(o.Path, o.Data, *o.Version), nil
	case "delete":
		return client.DeleteOp(o.Path, *o.Version), nil
	case "check":
		return client.CheckOp(o.Path, *o.Version), nil
	}
	return op, answer.Bad("op %q is unknown: allowed are create, set, delete and check", o.Op)
}

// maxTTL is a bound of the server.
const maxTTL = 1<<40 - 1

func createOptions(mode string, sequential bool, ttlMs int64, acl []proto.ACLJSON) (o client.CreateOptions, err error) {
	if o.ACL, err = proto.ACLFromJSON(acl); err != nil {
		return o, answer.Bad("acl: %v", err)
	}
	o.Sequential = sequential
	if ttlMs < 0 || ttlMs > maxTTL {
		return o, answer.Bad("ttl is %d, allowed are 1 to %d milliseconds", ttlMs, int64(maxTTL))
	}
	o.TTL = time.Duration(ttlMs) * time.Millisecond
	switch mode {
	case "", "persistent":
	case "ephemeral":
		o.Ephemeral = true
	case "container":
		o.Container = true
	default:
		return o, answer.Bad("mode %q is unknown: allowed are persistent, ephemeral and container", mode)
	}
	return o, nil
}

// decodeJSON decodes a body strictly: a wrong name is an error, and so is more than one value.
func decodeJSON(b []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return answer.Bad("the body is not the JSON that is expected: %v", err)
	}
	if d.More() {
		return answer.Bad("the body has more than one JSON value")
	}
	return nil
}

// The ETags of a znode begin with its creation and the version that a write demands, so that they
// differ for a znode that was deleted and created again. JSON shows the Stat, too, so its tag
// changes with the children and the ACL.

// dataTag is the ETag of the data alone.
func dataTag(s *proto.Stat) string { return fmt.Sprintf(`"%x-%d"`, int64(s.Czxid), s.Version) }

// jsonTag is the ETag of the data and the Stat as JSON.
func jsonTag(s *proto.Stat) string {
	return fmt.Sprintf(`"%x-%d-%x-%d"`, int64(s.Czxid), s.Version, int64(s.Pzxid), s.Aversion)
}

// aclTag is the ETag of the ACL and the Stat as JSON.
func aclTag(s *proto.Stat) string {
	return fmt.Sprintf(`"acl-%x-%d-%x-%d"`, int64(s.Czxid), s.Aversion, int64(s.Pzxid), s.Version)
}

// unchanged sets the ETag of an answer. If the caller has that representation, it answers with 304
// and returns true.
func unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	for given := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// condition is what a write demands of the present znode.
type condition struct {
	version int32
	czxid   proto.Zxid // 0: any
}

// ifMatch returns the condition of a write of the data, or of the ACL. A version alone is allowed,
// too.
func ifMatch(r *http.Request, acl bool) (condition, error) {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return condition{}, answer.Errorf(http.StatusPreconditionRequired,
			"the header If-Match must have the ETag that you saw, its version as \"3\", or * for any")
	}
	if len(given) == 1 && given[0] == "*" {
		return condition{version: client.AnyVersion}, nil
	}
	text, ofACL := strings.CutPrefix(strings.Trim(given[0], `"`), "acl-")
	if len(given) == 1 && given[0] == `"`+strings.ReplaceAll(given[0], `"`, "")+`"` && (acl || !ofACL) {
		czxid, version := "0", text
		if parts := strings.Split(text, "-"); len(parts) > 1 && ofACL == acl {
			czxid, version = parts[0], parts[1]
		}
		created, err := strconv.ParseInt(czxid, 16, 64)
		if n, bad := strconv.ParseUint(version, 10, 31); err == nil && bad == nil {
			return condition{int32(n), proto.Zxid(created)}, nil
		}
	}
	return condition{}, answer.Bad(`If-Match is %q, allowed are *, one ETag, and one version such as "3"`,
		strings.Join(given, ", "))
}

// demand fails if the znode is not the one that the caller saw. Between this and the write it can
// only be replaced by one that has the same version: the protocol has no request that compares
// creations.
func (h *Handler) demand(r *http.Request, cl *client.Client, path string, c condition) error {
	if c.czxid == 0 {
		return nil
	}
	if stat, ok, err := cl.Exists(r.Context(), path, false); err != nil || !ok || stat.Czxid == c.czxid {
		return err
	}
	return h.conflict(r, cl, path, proto.ErrBadVersion)
}
