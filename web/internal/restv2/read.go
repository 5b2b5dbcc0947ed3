package restv2

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

func (h *Handler) get(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "children", "after", "skip", "prefix", "limit", "stat", "acl", "watch", "at")
	if err != nil {
		return err
	}
	absent := func(kind string) bool { return !q.values.Has(kind) }
	kinds := len(slices.DeleteFunc([]string{"children", "acl", "watch"}, absent))
	switch children, acl := q.flag("children"), q.flag("acl"); {
	case q.values.Has("at") && q.values.Has("watch"):
		return answer.Bad("at and watch exclude each other")
	case q.err == nil && q.values.Has("at") && kinds <= 1:
		return h.at(w, r, path, q)
	case kinds <= 1 && q.values.Has("watch"):
		return h.events(w, r, path, q)
	case q.err != nil:
		return q.err
	case kinds > 1:
		return answer.Bad("only one of children, acl and watch is possible")
	case children:
		return h.children(w, r, cl, path, q)
	case acl:
		return h.acl(w, r, cl, path)
	}
	return h.data(w, r, cl, path)
}

type znode struct {
	Path string  `json:"path"`
	Stat *Stat   `json:"stat"`
	Data *[]byte `json:"data,omitempty"` // points to nil for null data
}

func (h *Handler) data(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	data, stat, err := cl.Get(r.Context(), path, false)
	if err != nil {
		return err
	}
	leave, err := call.Of(r).Large(len(data))
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Vary", "Accept")
	if wantsBytes(r) {
		if !unchanged(w, r, dataTag(&stat)) {
			answer.Attachment(w, data)
		}
		return nil
	}
	if unchanged(w, r, jsonTag(&stat)) {
		return nil
	}
	return encoded(w, r, len(data), znode{path, h.stat(path, stat), &data})
}

// encoded answers with a value whose JSON is made of this many bytes.
func encoded(w http.ResponseWriter, r *http.Request, bytes int, v any) error {
	var b []byte
	if err := call.Of(r).Heavy(bytes, func() (err error) { b, err = json.Marshal(v); return err }); err != nil {
		return err
	}
	answer.Encoded(w, http.StatusOK, "application/json", b)
	return nil
}

// wantsBytes reports whether the caller asks for the data alone.
func wantsBytes(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/octet-stream")
}

func (h *Handler) acl(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	acl, stat, err := cl.GetACL(r.Context(), path)
	if err != nil {
		return err
	}
	if unchanged(w, r, aclTag(&stat)) {
		return nil
	}
	return call.Of(r).JSON(w, struct {
		ACL  []proto.ACLJSON `json:"acl"`
		Stat *Stat           `json:"stat"`
	}{proto.ACLToJSON(acl), h.stat(path, stat)})
}

const (
	defaultPage = 200
	maxPage     = 1000
	maxSkip     = 1_000_000
)

type child struct {
	Name string `json:"name"`
	Stat *Stat  `json:"stat,omitempty"`
}

func (h *Handler) children(w http.ResponseWriter, r *http.Request, cl *client.Client, path string, q params) error {
	limit, skip, stats := int(q.number("limit", 1, maxPage, defaultPage)), int(q.number("skip", 0, maxSkip, 0)), q.flag("stat")
	if q.err != nil {
		return q.err
	}
	leave, err := call.Of(r).Large(skip * 16) // names that are read
	if err != nil {
		return err
	}
	defer leave()
	var stat proto.Stat
	after, prefix := q.values.Get("after"), q.values.Get("prefix")
	if skip > 0 {
		for c, err := range cl.ChildrenPages(r.Context(), path, client.PageOptions{StartAfter: after, Prefix: prefix, Limit: skip}) {
			if err != nil {
				return err
			}
			if after, skip = c.Name, skip-1; skip == 0 {
				break
			}
		}
	}
	o := client.PageOptions{StartAfter: after, Prefix: prefix, Limit: limit + 1, Parent: &stat}
	if stats {
		o.Flags = proto.PageStat
	}
	list, next := []child{}, ""
	for c, err := range cl.ChildrenPages(r.Context(), path, o) {
		if err != nil {
			return err
		}
		if len(list) == limit {
			next = list[limit-1].Name
			break
		}
		shown := child{Name: c.Name}
		if stats && c.Err == nil { // a child that the caller may not read has no Stat
			shown.Stat = h.stat(strings.TrimSuffix(path, "/")+"/"+c.Name, c.Stat)
		}
		list = append(list, shown)
	}
	return call.Of(r).JSON(w, struct {
		Path     string  `json:"path"`
		Stat     *Stat   `json:"stat"`
		Children []child `json:"children"`
		Next     string  `json:"next,omitempty"`
	}{path, h.stat(path, stat), list, next})
}

// conflict adds the present Stat to the error of a write whose version differs.
func (h *Handler) conflict(r *http.Request, cl *client.Client, path string, err error) error {
	p := call.ProblemOf(err)
	if p.Code != int32(proto.ErrBadVersion) {
		return err
	}
	if stat, ok, err := cl.Exists(r.Context(), path, false); err == nil && ok {
		p.Stat = h.stat(path, stat)
	}
	return p
}
