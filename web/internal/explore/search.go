package explore

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// errEnough ends a walk that has found all that may be answered.
var errEnough = errors.New("enough")

type progress struct {
	Visited int64  `json:"visited"`
	Found   int64  `json:"found"`
	Denied  int64  `json:"denied"`
	Path    string `json:"path,omitempty"`
	Reason  string `json:"reason,omitempty"` // of end: complete, limit, time, or an error
}

// report counts a znode and sends the progress every now and then.
func (p *progress) report(ev *events, last *time.Time, n *subtree.Znode) error {
	p.Visited++
	if n.Denied != nil {
		p.Denied++
	}
	if p.Visited > maxWalk {
		return errEnough
	}
	if p.Visited%256 == 0 && time.Since(*last) > flushEvery {
		*last = time.Now()
		p.Path = n.Path
		return ev.send("progress", p)
	}
	return nil
}

// end sends why a walk is over.
func (p *progress) end(ctx context.Context, ev *events, err error) {
	p.Path = ""
	switch {
	case err == nil:
		p.Reason = "complete"
	case errors.Is(err, errEnough):
		p.Reason = "limit"
	case ctx.Err() != nil:
		p.Reason = "time"
	default:
		p.Reason = printable.Error(err)
	}
	_ = ev.send("end", p) // the caller has gone
}

type match struct {
	Path        string `json:"path"`
	DataLength  int32  `json:"dataLength"`
	NumChildren int32  `json:"numChildren"`
	Session     string `json:"session,omitempty"`
	Mtime       int64  `json:"mtime"`
	Excerpt     string `json:"excerpt,omitempty"` // of the data, around the match
}

// search walks below root and sends the znodes whose name and content match: a glob, or without *
// and ? a part of the name; a part of the data or, with regexp, regular expressions for both.
func (e *explorer) search(q *request) (any, error) {
	root, limit := q.znode("root", "/"), q.rows()
	name, content, err := patterns(q.query)
	if err != nil {
		return nil, err
	}
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	ev, p, last := startEvents(q.w), progress{}, time.Now()
	ctx := q.Context()
	err = subtree.Walk(ctx, zk, root, subtree.Options{Data: content != nil, Below: subtree.All}, func(n *subtree.Znode) error {
		if err := p.report(ev, &last, n); err != nil || n.Denied != nil {
			return err
		}
		m := match{Path: n.Path, DataLength: n.Stat.DataLength, NumChildren: n.Stat.NumChildren, Mtime: n.Stat.MtimeMs}
		if name != nil && !name(ctx, path.Base(n.Path)) {
			return nil
		}
		if content != nil {
			at := content(&interruptible{ctx: ctx, data: n.Data})
			if at == nil {
				return nil
			}
			m.Excerpt = excerpt(n.Data, at)
		}
		if n.Stat.EphemeralOwner != 0 {
			m.Session = idText(int64(n.Stat.EphemeralOwner))
		}
		if p.Found++; p.Found > int64(limit) {
			return errEnough
		}
		return ev.send("match", m)
	})
	p.Found = min(p.Found, int64(limit))
	p.end(ctx, ev, err)
	return nil, nil
}

// maxGlob bounds a glob in bytes: path.Match compares it with each part of a name, which may have
// as many bytes as a request, and cannot be interrupted.
const maxGlob = 256

// patterns returns what matches names, and finds a match in content; nil matches everything.
func patterns(q url.Values) (name func(context.Context, string) bool, content func(io.RuneReader) []int, err error) {
	nameText, contentText, isRegexp := q.Get("name"), q.Get("content"), q.Has("regexp")
	if nameText == "" && contentText == "" {
		return nil, nil, answer.Bad("name or content must say what to search for")
	}
	if !isRegexp {
		contentText = regexp.QuoteMeta(contentText)
		if !strings.ContainsAny(nameText, "*?[") {
			nameText = regexp.QuoteMeta(nameText)
			isRegexp = true
		}
	}
	switch {
	case nameText == "":
	case isRegexp:
		re, err := regexp.Compile("(?i)" + nameText)
		if err != nil {
			return nil, nil, answer.Bad("name: %v", err)
		}
		name = func(ctx context.Context, s string) bool {
			return re.MatchReader(&interruptible{ctx: ctx, data: []byte(s)})
		}
	case len(nameText) > maxGlob:
		return nil, nil, answer.Bad("name has %d bytes, allowed are %d with *, ? or [", len(nameText), maxGlob)
	default:
		if _, err := path.Match(nameText, ""); err != nil {
			return nil, nil, answer.Bad("name %q: %v", nameText, err)
		}
		name = func(_ context.Context, s string) bool {
			ok, _ := path.Match(nameText, s) // the pattern is valid
			return ok
		}
	}
	if contentText != "" {
		re, err := regexp.Compile("(?i)" + contentText)
		if err != nil {
			return nil, nil, answer.Bad("content: %v", err)
		}
		content = re.FindReaderIndex
	}
	return name, content, nil
}

// interruptible reads data, or a name, until ctx ends: a regular expression may take ms per byte.
type interruptible struct {
	ctx  context.Context
	data []byte
	n    int
}

func (r *interruptible) ReadRune() (rune, int, error) {
	if r.n++; len(r.data) == 0 || r.n%64 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.data)
	r.data = r.data[size:]
	return c, size, nil
}

// excerpt returns the text around a match, without bytes that are not text.
func excerpt(data []byte, at []int) string {
	const around = 60
	from, to := max(0, at[0]-around), min(len(data), min(at[1], at[0]+around)+around)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, string(data[from:to]))
}

type difference struct {
	Path  string `json:"path"` // below both roots
	Left  *side  `json:"left,omitempty"`
	Right *side  `json:"right,omitempty"`
	// The differences if both exist.
	Data      bool `json:"data,omitempty"`
	ACL       bool `json:"acl,omitempty"`
	Ephemeral bool `json:"ephemeral,omitempty"`
	Access    bool `json:"access,omitempty"` // one of them may not be read
}

type side struct {
	DataLength int32           `json:"dataLength"`
	Version    int32           `json:"version"`
	Mtime      int64           `json:"mtime"`
	Session    string          `json:"session,omitempty"`
	Data       []byte          `json:"data,omitempty"` // base64, of at most maxSide bytes
	Cut        bool            `json:"cut,omitempty"`
	ACL        []proto.ACLJSON `json:"acl,omitempty"`
}

const maxSide = 16 << 10

// compare sends the differences of two subtrees, the right one of which may be on another ensemble.
func (e *explorer) compare(q *request) (any, error) {
	left, right, limit := q.znode("left", ""), q.znode("right", ""), q.rows()
	zk, err := q.client()
	if err != nil {
		return nil, err
	}
	ctx := q.Context()
	other := zk
	if connect := q.query.Get("connect"); connect != "" {
		if err := insider(q.Call); err != nil {
			return nil, err
		}
		q.Audit("compare with "+connect, proto.OK)
		if other, err = dialOther(ctx, connect); err != nil {
			return nil, err
		}
		defer func() { _ = other.Close() }() // after an error the session expires
	}
	ev, p := startEvents(q.w), progress{}
	a, b := subtree.Side{ZK: zk, Path: left}, subtree.Side{ZK: other, Path: right}
	same, err := subtree.Diff(ctx, a, b, !q.query.Has("noacl"), func(c subtree.Change) error {
		if p.Found++; p.Found > int64(limit) {
			return errEnough
		}
		if c.Access {
			p.Denied++
		}
		d := difference{Path: c.Rel, Left: newSide(c.Left), Right: newSide(c.Right), Data: c.Data, ACL: c.ACL, Ephemeral: c.Ephemeral, Access: c.Access}
		return ev.send("difference", d)
	})
	p.Found = min(p.Found, int64(limit))
	p.Visited = same + p.Found
	p.end(ctx, ev, err)
	return nil, nil
}

func newSide(n *subtree.Znode) *side {
	if n == nil {
		return nil
	}
	s := &side{DataLength: n.Stat.DataLength, Version: n.Stat.Version, Mtime: n.Stat.MtimeMs, Data: n.Data, ACL: proto.ACLToJSON(n.ACL)}
	if n.Stat.EphemeralOwner != 0 {
		s.Session = idText(int64(n.Stat.EphemeralOwner))
	}
	if len(s.Data) > maxSide {
		s.Data, s.Cut = s.Data[:maxSide], true
	}
	return s
}

// dialOther opens a session with another ensemble, without credentials.
func dialOther(ctx context.Context, connect string) (*client.Client, error) {
	servers, chroot, err := client.ParseServers(connect)
	if err != nil {
		return nil, answer.Bad("connect: %s", printable.Error(err))
	}
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	zk, err := client.Connect(ctx, client.Config{Servers: servers, Chroot: chroot})
	if err != nil {
		return nil, answer.Bad("connect to %.200s: %s", connect, printable.Error(err))
	}
	return zk, nil
}
