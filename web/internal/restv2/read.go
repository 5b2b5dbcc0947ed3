package restv2

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// get answers GET and HEAD.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, cl *client.Client, path string) error {
	q, err := query(r, "children", "after", "prefix", "limit", "stat", "acl", "watch", "at")
	if err != nil {
		return err
	}
	kinds := 0
	for _, kind := range []string{"children", "acl", "watch"} {
		if q.values.Has(kind) {
			kinds++
		}
	}
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

// znode is an answer about a znode.
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
func encoded(w http.ResponseWriter, r *http.Request, bytes int, v any) (err error) {
	var b []byte
	if late := call.Of(r).Heavy(bytes, func() { b, err = json.Marshal(v) }); late != nil || err != nil {
		return cmp.Or(late, err)
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
	statsAtOnce = 32
)

type child struct {
	Name string `json:"name"`
	Stat *Stat  `json:"stat,omitempty"`
}

// children answers with a page of a list of children.
func (h *Handler) children(w http.ResponseWriter, r *http.Request, cl *client.Client, path string, q params) error {
	limit, stats := int(q.number("limit", 1, maxPage, defaultPage)), q.flag("stat")
	if q.err != nil {
		return q.err
	}
	names, stat, err := h.lists.of(r.Context(), cl, path, q.values.Has("after"))
	if err != nil {
		return err
	}
	var page []string
	var next string
	if err := call.Of(r).Heavy(64*len(names), func() {
		page, next = pageOf(names, q.values.Get("after"), q.values.Get("prefix"), limit)
	}); err != nil {
		return err
	}
	list := make([]child, len(page))
	for i, name := range page {
		list[i].Name = name
	}
	if stats {
		if list, err = h.stats(r, cl, path, list); err != nil {
			return err
		}
	}
	return call.Of(r).JSON(w, struct {
		Path     string  `json:"path"`
		Stat     *Stat   `json:"stat"`
		Children []child `json:"children"`
		Next     string  `json:"next,omitempty"`
	}{path, h.stat(path, stat), list, next})
}

// pageOf returns the first of sorted names after a name, and the last of them if there are more.
func pageOf(names []string, after, prefix string, limit int) (page []string, next string) {
	from, found := slices.BinarySearch(names, max(after, prefix))
	if found && after >= prefix && after != "" {
		from++
	}
	for _, name := range names[from:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if len(page) == limit {
			return page, page[limit-1]
		}
		page = append(page, name)
	}
	return page, ""
}

// stats adds the Stats, and leaves out children that no longer exist. A child that the caller may
// not read has no Stat.
func (h *Handler) stats(r *http.Request, cl *client.Client, parent string, list []child) ([]child, error) {
	err := cmp.Or(parallel.Each(len(list), statsAtOnce, func(i int) error {
		path := strings.TrimSuffix(parent, "/") + "/" + list[i].Name
		stat, ok, err := cl.Exists(r.Context(), path, false)
		switch {
		case errors.Is(err, proto.ErrNoAuth):
			return nil
		case ok:
			list[i].Stat = h.stat(path, stat)
		case err == nil:
			list[i].Name = "" // left out below
		}
		return err
	})...)
	return slices.DeleteFunc(list, func(c child) bool { return c.Name == "" }), err
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
