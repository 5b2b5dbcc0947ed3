package restv2

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// historyTime bounds the reading of the archive: less than an HTTP server waits for an answer.
const historyTime = 45 * time.Second

func (h *Handler) at(w http.ResponseWriter, r *http.Request, path string, q params) error {
	children, acl, stats := q.flag("children"), q.flag("acl"), q.flag("stat")
	limit, skip := int(q.number("limit", 1, maxPage, defaultPage)), int(q.number("skip", 0, maxSkip, 0))
	text := q.values.Get("at")
	m, ok := history.ParseMoment(text, time.RFC3339Nano)
	switch {
	case !ok:
		return answer.Bad("at is %.40q: name a time, such as 2026-11-22T08:00:00Z (percent-encode +), or a zxid, such as 0x100000007", text)
	case q.err != nil:
		return q.err
	case stats:
		return answer.Bad("stat is not possible with at: ask for each child")
	}
	ask := history.Query{Path: path}
	archive, err := call.Of(r).History(&ask)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), historyTime)
	defer cancel()
	z, err := archive.At(ctx, ask, m)
	if err != nil {
		return err
	}
	leave, err := call.Of(r).Large(len(z.Data))
	if err != nil {
		return err
	}
	defer leave()
	v := struct {
		Path     string          `json:"path"`
		Zxid     string          `json:"zxid"` // of the last write before the moment
		Time     int64           `json:"time"`
		Stat     *Stat           `json:"stat"`
		Data     *[]byte         `json:"data,omitempty"`
		ACL      []proto.ACLJSON `json:"acl,omitempty"`
		Children *[]child        `json:"children,omitempty"`
		Next     string          `json:"next,omitempty"`
	}{Path: path, Zxid: z.Zxid.String(), Time: z.Time.UnixMilli(), Stat: &Stat{StatJSON: z.Stat.JSON()}}
	switch {
	case children:
		slices.Sort(z.Children)
		page, next := pageOf(z.Children, q.values.Get("after"), q.values.Get("prefix"), skip, limit)
		list := make([]child, len(page))
		for i, name := range page {
			list[i].Name = name
		}
		v.Children, v.Next = &list, next
	case acl:
		v.ACL = proto.ACLToJSON(z.ACL)
	case wantsBytes(r):
		answer.Attachment(w, z.Data)
		return nil
	default:
		v.Data = &z.Data
	}
	return encoded(w, r, len(z.Data), v)
}

// pageOf returns sorted names after a name, without skipped ones, and the last if there are more.
func pageOf(names []string, after, prefix string, skip, limit int) (page []string, next string) {
	from, found := slices.BinarySearch(names, max(after, prefix))
	if found && after >= prefix && after != "" {
		from++
	}
	for _, name := range names[min(from+skip, len(names)):] {
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
