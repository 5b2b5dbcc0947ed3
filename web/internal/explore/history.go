package explore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
)

const (
	historyTime = time.Minute // to read the archive
	maxVersions = 100         // of a znode in an answer, each with its data
)

// version is a change of a znode, and the znode after it, in JSON.
type version struct {
	Path   string `json:"path,omitempty"` // in answers about a subtree
	Change string `json:"change"`         // created, changed, acl, deleted; earlier, gap
	Zxid   string `json:"zxid"`
	Time   int64  `json:"time"` // Unix ms
	Op     string `json:"op,omitempty"`
	// Session and By are for administrators and callers on this machine.
	Session    string          `json:"session,omitempty"`
	By         []string        `json:"by,omitempty"` // identities
	Version    int32           `json:"version"`
	DataLength int32           `json:"dataLength"`
	Data       []byte          `json:"data,omitempty"` // at most maxSide bytes
	Cut        bool            `json:"cut,omitempty"`
	ACL        []proto.ACLJSON `json:"acl,omitempty"`
}

// history answers with a page of a znode's versions, newest first; with since, of a subtree.
func (e *explorer) history(q *request) (any, error) {
	ask := history.Query{
		MaxData: maxSide, Path: q.znode("path", ""), Limit: min(q.rows(), maxVersions),
		Before: proto.Zxid(q.hex("before", q.query.Get("before"), 63, 0)),
	}
	if text := q.query.Get("since"); text != "" {
		var err error
		if ask.Since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			q.bad("since is %.40q, allowed is a time such as 2026-11-22T08:00:00Z", text)
		}
		ask.Limit = q.rows()
	}
	if q.err != nil {
		return nil, q.err
	}
	ctx, cancel := context.WithTimeout(q.Context(), historyTime)
	defer cancel()
	archive, err := q.History(&ask)
	if err != nil {
		return nil, err
	}
	page, err := archive.Changes(ctx, ask)
	if err != nil {
		return nil, err
	}
	if err := q.withoutClosed(page, ask.Path); err != nil {
		return nil, err
	}
	answer := struct {
		Path     string    `json:"path"`
		Versions []version `json:"versions"`
		Hidden   int       `json:"hidden,omitempty"` // versions that the caller might not read then
		Next     string    `json:"next,omitempty"`   // before of the next page
		Until    int64     `json:"until"`            // the end of the archive: Unix ms
	}{Path: ask.Path, Versions: []version{}, Hidden: page.Hidden, Until: page.Until.UnixMilli()}
	if page.Next != 0 {
		answer.Next = idText(int64(page.Next))
	}
	inside := isInsider(q.Call)
	for i := range page.Changes {
		answer.Versions = append(answer.Versions, newVersion(&page.Changes[i], inside))
	}
	return answer, nil
}

// withoutClosed hides the changes of znodes below root that the caller may not read now, or whose
// names the caller may not list now. For root itself History refuses them.
func (q *request) withoutClosed(page *history.Page, root string) error {
	zk, err := q.client()
	closed := make(map[string]bool)
	all := len(page.Changes)
	page.Changes = slices.DeleteFunc(page.Changes, func(c history.Change) bool {
		for path := c.Path; len(path) > 1 && path != root && err == nil; path = proto.ParentPath(path) {
			if _, asked := closed[path]; !asked {
				_, _, err = zk.Exists(q.Context(), path, false)
				if closed[path] = errors.Is(err, proto.ErrNoAuth); closed[path] {
					err = nil
				}
			}
			if closed[path] {
				return true
			}
		}
		return false
	})
	page.Hidden += all - len(page.Changes)
	return err
}

func newVersion(c *history.Change, inside bool) version {
	v := version{Path: c.Path, Change: c.Kind, Zxid: idText(int64(c.Zxid)), Time: c.Time.UnixMilli(), Op: c.Op}
	if inside && c.Session != 0 {
		v.Session = idText(int64(c.Session))
		for _, id := range proto.ShownIDs(c.IDs) {
			v.By = append(v.By, id.Shown())
		}
	}
	if z := c.Znode; z != nil {
		v.Version, v.DataLength, v.Data, v.ACL = z.Stat.Version, z.Stat.DataLength, z.Data, proto.ACLToJSON(z.ACL)
		v.Cut = int(v.DataLength) > len(v.Data)
	}
	return v
}
