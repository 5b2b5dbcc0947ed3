package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

const (
	deleteBatch = 500 // znodes that one multi deletes
	shownPaths  = 200 // of a subtree
)

// subtree answers with the znodes that a recursive delete would remove, or the first up to limit.
func (e *explorer) subtree(q *request) (any, error) {
	root, limit := q.znode("root", ""), int64(maxDelete)
	if q.query.Has("limit") {
		limit = int64(q.rows())
	}
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	// What is created or changed after this read has a higher zxid, see delete.
	if _, _, err := zk.Exists(q.Context(), root, false); err != nil {
		return nil, err
	}
	found := struct {
		Zxid       string   `json:"zxid"`
		Znodes     int64    `json:"znodes"`
		Bytes      int64    `json:"bytes"`
		Ephemerals int64    `json:"ephemerals"`
		Sessions   []string `json:"sessions"`
		Paths      []string `json:"paths"`
		Denied     int64    `json:"denied,omitempty"`
		Truncated  bool     `json:"truncated,omitempty"`
	}{Zxid: idText(int64(zk.LastZxid())), Sessions: []string{}, Paths: []string{}}
	sessions := make(map[proto.SessionID]bool)
	walk := subtree.Options{Below: subtree.All, NoSystem: true}
	err = subtree.Walk(q.Context(), zk, root, walk, func(n *subtree.Znode) error {
		if found.Znodes == limit {
			found.Truncated = true
			return errEnough
		}
		found.Znodes++
		found.Bytes += int64(n.Stat.DataLength)
		if n.Denied != nil {
			found.Denied++
		}
		if owner := n.Stat.EphemeralOwner; owner != 0 {
			found.Ephemerals++
			if !sessions[owner] && len(sessions) < shownPaths {
				sessions[owner] = true
				found.Sessions = append(found.Sessions, idText(int64(owner)))
			}
		}
		if len(found.Paths) < shownPaths {
			found.Paths = append(found.Paths, n.Path)
		}
		return nil
	})
	if err != nil && !found.Truncated {
		return nil, err
	}
	return found, nil
}

// delete deletes a subtree in multis, children before parents, and sends an event for each. Each
// delete names the version that was read, so that a change meanwhile ends it. With the zxid that
// subtree has answered, nothing is deleted if anything was created or changed since: nobody has
// seen it. Of a large subtree it deletes maxDelete znodes, or limit, and says so.
func (e *explorer) delete(q *request) (any, error) {
	var want struct {
		Path, Confirm, Zxid string
		Limit               int
	}
	body, err := io.ReadAll(call.Body(q.w, q.Request, 64<<10))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, answer.Bad(`the body must be {"path": "/a", "confirm": "/a"}: %v`, err)
	}
	if err := proto.ValidatePath(want.Path); err != nil || want.Path == "/" {
		return nil, answer.Bad("path %.200q cannot be deleted", want.Path)
	}
	if want.Confirm != want.Path {
		return nil, answer.Bad("confirm is not the path %s", want.Path)
	}
	if want.Limit < 0 {
		return nil, answer.Bad("limit is %d, allowed are 0 to %d", want.Limit, maxDelete)
	}
	limit := min(cmp.Or(want.Limit, maxDelete), maxDelete)
	seen := proto.Zxid(q.hex("zxid", want.Zxid, 63, math.MaxInt64))
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	var ops []client.Op
	var paths []string // of ops
	more := ""         // the first znode that is left for another request
	err = subtree.Walk(q.Context(), zk, want.Path, subtree.Options{Below: subtree.All}, func(n *subtree.Znode) error {
		switch {
		case n.Denied != nil:
			return n.Denied
		case n.Stat.Mzxid > seen:
			return answer.Errorf(http.StatusPreconditionFailed, "%s was created or changed in the meantime.", n.Path)
		case len(ops) == limit:
			more = n.Path
			return errEnough
		}
		ops, paths = append(ops, client.DeleteOp(n.Path, n.Stat.Version)), append(paths, n.Path)
		return nil
	})
	if err != nil && more == "" {
		return nil, err
	}
	left := ops[:0]
	for i, op := range ops {
		if !strings.HasPrefix(more, paths[i]+"/") { // a znode that keeps children stays
			left = append(left, op)
		}
	}
	if len(left) == 0 {
		return nil, answer.Errorf(http.StatusRequestEntityTooLarge,
			"%s goes deeper than %d znodes: delete %s first", want.Path, limit, more)
	}
	slices.Reverse(left)
	e.deleteAll(q, zk, left, more != "")
	return nil, nil
}

type deletion struct {
	Deleted int    `json:"deleted"`
	Of      int    `json:"of"`
	More    bool   `json:"more,omitempty"`  // the subtree has more than Of
	Error   string `json:"error,omitempty"` // why the rest was not deleted
}

// deleteAll sends progress until the end, or until the caller leaves.
func (e *explorer) deleteAll(q *request, zk *client.Client, ops []client.Op, more bool) {
	ev, d := startEvents(q.w), deletion{Of: len(ops), More: more}
	for d.Deleted < len(ops) {
		batch := ops[d.Deleted:min(d.Deleted+deleteBatch, len(ops))]
		if _, err := zk.Multi(q.Context(), batch...); err != nil {
			d.Error = call.ProblemOf(err).Detail
			break
		}
		d.Deleted += len(batch)
		if ev.send("progress", d) != nil {
			return
		}
	}
	_ = ev.send("end", d) // the caller may have gone
}

// export answers with a subtree as JSON lines, as the shell exports it.
func (e *explorer) export(q *request) (any, error) {
	root := q.znode("root", "/")
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	kinds := subtree.Kinds{}
	for _, k := range e.server.Facts().ZnodeKinds() {
		kinds[k.Path] = k.TTL.Milliseconds()
	}
	if _, there, err := zk.Exists(q.Context(), root, false); err != nil || !there {
		if err == nil {
			err = proto.ErrNoNode
		}
		return nil, err
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(exportName(root)))
	from := subtree.Side{ZK: zk, Path: root, Kinds: kinds}
	_, err = subtree.Export(q.Context(), from, !q.query.Has("noacl"), q.w, func(*subtree.Exported) {})
	if err != nil { // no end line: the import refuses the file
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}

func exportName(root string) string {
	name := strings.ReplaceAll(root[1:], "/", "-")
	if name == "" || len(name) > 100 {
		name = "znodes"
	}
	return name + ".jsonl"
}

// importLines creates the znodes of an export below root.
func (e *explorer) importLines(q *request) (any, error) {
	root, text := q.znode("root", ""), cmp.Or(q.query.Get("existing"), "refuse")
	existing, ok := map[string]subtree.Existing{
		"refuse": subtree.Refuse, "keep": subtree.Keep, "replace": subtree.Replace,
	}[text]
	if !ok {
		q.bad("existing is %.20q, allowed are refuse, keep and replace", text)
	}
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	l := &subtree.Loader{ZK: zk, To: root, Existing: existing, WithoutACL: q.query.Has("noacl")}
	err = l.Load(q.Context(), call.Body(q.w, q.Request, maxImport))
	if err != nil {
		p, reason := *call.ProblemOf(err), printable.Error(err)
		if p.Code == 0 && p.Status == http.StatusServiceUnavailable { // the file
			p = *answer.Errorf(http.StatusBadRequest, "%s", reason)
		}
		p.Detail = fmt.Sprintf("after %d znodes were created and %d changed: %s", l.Created, l.Changed, reason)
		return nil, &p
	}
	return map[string]int64{"created": l.Created, "changed": l.Changed, "kept": l.Kept, "ephemeralsLeftOut": l.Skipped}, nil
}
