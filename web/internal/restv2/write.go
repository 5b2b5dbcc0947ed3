package restv2

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// put sets data or an ACL, or creates a znode.
func (h *Handler) put(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "acl", "newAcl")
	if err != nil {
		return err
	}
	acl := q.flag("acl")
	o, err := createOptions("", false, 0, q.newACL())
	if err = errors.Join(q.err, err); err != nil {
		return err
	}
	creates := r.Header.Get("If-None-Match") == "*" && !acl
	if o.ACL != nil && !creates {
		return answer.Bad("the parameter newAcl is for a new znode: send If-None-Match: *, or the ACL as the body with the parameter acl")
	}
	var want condition
	if !creates {
		if want, err = ifMatch(r, acl); err != nil {
			return err
		}
	}
	data, err := call.Of(r).ReadBody(w)
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
		_, stat, err = cl.Create(r.Context(), path, data, o)
		if errors.Is(err, proto.ErrNodeExists) {
			p := call.ProblemOf(err)
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
	if err := decodeJSON(r, body, &given); err != nil {
		return err
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

func (h *Handler) post(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "name", "mode", "sequential", "ttl", "session", "newAcl")
	if err != nil {
		return err
	}
	o, err := createOptions(q.values.Get("mode"), q.flag("sequential"), q.number("ttl", 1, maxTTL, 0), q.newACL())
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
	data, err := call.Of(r).ReadBody(w)
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
	body, err := call.Of(r).ReadBody(w)
	if err != nil {
		return err
	}
	var given []operation
	if err := decodeJSON(r, body, &given); err != nil {
		return err
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
			if res.Err != nil && call.ProblemOf(res.Err).Code != int32(proto.ErrRuntimeInconsistency) {
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
