package web_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// past is a history.Archive that knows one page, and remembers what it was asked for.
type past struct {
	page  history.Page
	err   error
	asked history.Query
	at    history.Moment
}

func (p *past) Changes(_ context.Context, q history.Query) (*history.Page, error) {
	p.asked = q
	return &p.page, p.err
}

func (p *past) At(_ context.Context, q history.Query, m history.Moment) (*history.State, error) {
	p.asked, p.at = q, m
	return &history.State{Znode: *p.page.Changes[0].Znode, Children: []string{"b", "c", "a"}, Zxid: 7, Time: time.UnixMilli(5)}, p.err
}

func TestHistory(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	old := &history.Znode{Stat: proto.Stat{Version: 3, DataLength: int32(len(long)) + 1}, Data: []byte(long), ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}}}
	p := &past{page: history.Page{Next: 0x10, Hidden: 2, Until: time.UnixMilli(9), Changes: []history.Change{
		{Kind: history.Changed, Zxid: 0x20, Time: time.UnixMilli(8), Op: "setData", Session: 0x30, IDs: []proto.ID{{Scheme: "digest", ID: "u:hash"}, {Scheme: "sasl-any", ID: "x"}}, Znode: old},
		{Kind: history.Deleted, Zxid: 0x11, Time: time.UnixMilli(7)},
	}}}
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read, History: p})
	behind := open(t, server.Config{}, web.Options{History: p, Roles: roles(t, "read=sasl:ann"),
		ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	zk := s.connect()
	s.create(zk, client.CreateOptions{}, "/closed")
	if _, err := zk.SetACL(t.Context(), "/closed", []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}, -1); err != nil {
		t.Fatal(err)
	}
	r := s.want(200, `"change":"changed","zxid":"0x20","time":8,"op":"setData","session":"0x30","by":["digest:u"],"version":3`, "GET", "/ui/api/history?path=/gone&before=0x99&limit=7", "")
	for _, part := range []string{`"cut":true`, `"hidden":2`, `"next":"0x10"`, `"until":9`, `"change":"deleted"`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("%.200s lacks %s", r.body, part)
		}
	}
	if q := p.asked; q.Path != "/gone" || q.Before != 0x99 || q.Limit != 7 || len(q.IDs) != 1 || q.IDs[0].Scheme != "ip" {
		t.Errorf("%+v", q)
	}
	ann := []string{"X-Forwarded-For: 10.0.0.9", "X-User: ann"}
	if r := behind.want(200, `"zxid":"0x20"`, "GET", "/ui/api/history?path=/gone", "", ann...); strings.Contains(r.body, "0x30") || strings.Contains(r.body, "digest") {
		t.Errorf("sessions of others: %.300s", r.body)
	}
	if q := p.asked; len(q.IDs) != 2 || q.IDs[0].ID != "ann" {
		t.Errorf("%+v", q)
	}
	p.asked = history.Query{}
	for _, path := range []string{"/ui/api/history?path=/closed", "/znodes/v2/closed?at=0x20"} {
		s.want(403, "-102", "GET", path, "")
	}
	if p.asked.Path != "" {
		t.Error("an archive was read for somebody who may not read the znode")
	}
	s.want(400, "zxid", "GET", "/ui/api/history?path=/gone&before=x", "")
	p.page.Changes[1].Path = "/gone/child"
	const below = "&since=2026-11-22T08:00:00.123Z"
	s.want(200, `{"path":"/gone/child","change":"deleted"`, "GET", "/ui/api/history?path=/gone&limit=20000"+below, "")
	if q := p.asked; !q.Since.Equal(time.Date(2026, 11, 22, 8, 0, 0, 123e6, time.UTC)) || q.Limit != 10_000 {
		t.Errorf("%+v", q)
	}
	s.want(200, "", "GET", "/ui/api/history?path=/gone&limit=20000", "")
	if q := p.asked; !q.Since.IsZero() || q.Limit != 100 { // each with its data
		t.Errorf("%+v", q)
	}
	page := p.page
	p.page.Changes = append(slices.Clone(page.Changes), history.Change{Path: "/closed", Kind: history.Created, Zxid: 0x10}, history.Change{Path: "/closed/child", Kind: history.Deleted, Zxid: 0x10})
	if r := s.want(200, `"hidden":4`, "GET", "/ui/api/history?path=/"+below, ""); strings.Contains(r.body, "closed") {
		t.Errorf("a znode that the caller may not read now, or its child: %s", r.body)
	}
	p.page = page
	for _, bad := range []string{"x", "-1", "1h", "3600", "2026-11-22"} {
		s.want(400, "since", "GET", "/ui/api/history?path=/gone&since="+bad, "")
	}

	s.want(200, `"zxid":"0x7","time":5,"stat":{`, "GET", "/znodes/v2/gone?at=0x20", "")
	s.want(200, `"children":[{"name":"a"},{"name":"b"}],"next":"b"`, "GET", "/znodes/v2/gone?at=0x20&children&limit=2", "")
	for query, list := range map[string]string{"skip=1": `[{"name":"b"},{"name":"c"}]}`, "after=a&skip=1": `[{"name":"c"}]}`, "skip=4": `[]}`} {
		s.want(200, `"children":`+list, "GET", "/znodes/v2/gone?at=0x20&children&limit=2&"+query, "")
	}
	s.want(200, `"perms":"cdrwa"`, "GET", "/znodes/v2/gone?at=2026-11-22T08:00:00Z&acl", "")
	if p.at.Time.Year() != 2026 || p.at.Zxid != 0 {
		t.Errorf("%+v", p.at)
	}
	if r := s.want(200, "xxx", "GET", "/znodes/v2/gone?at=0x20", "", "Accept: application/octet-stream"); r.body != long {
		t.Errorf("%d bytes", len(r.body))
	}
	for _, bad := range []string{"at=0x", "at=yesterday", "at=0x1&stat&children", "at=0x1&watch", "at=0x1&acl&children"} {
		s.want(400, "", "GET", "/znodes/v2/gone?"+bad, "")
	}
	for err, status := range map[error]int{
		fmt.Errorf("x: %w", history.ErrNotCovered): 404, fmt.Errorf("x: %w", history.ErrBusy): 503, fmt.Errorf("/gone: %w", proto.ErrNoNode): 404,
		fmt.Errorf("/gone: %w", proto.ErrNoAuth): 403, fmt.Errorf("x: %w", history.ErrTooLarge): 503, context.DeadlineExceeded: 504,
	} {
		p.err = err
		s.want(status, "", "GET", "/znodes/v2/gone?at=0x20", "")
		s.want(status, "", "GET", "/ui/api/history?path=/gone", "")
	}
}
