package web_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// connect opens a session with the server of a site, which ends with the test.
func (s *site) connect() *client.Client {
	s.t.Helper()
	zk, err := client.Connect(s.t.Context(), client.Config{
		Servers: []string{"x:1"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) { return s.s.Dial(ctx) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = zk.Close() }) // after the end of the session: an error
	return zk
}

func (s *site) create(zk *client.Client, o client.CreateOptions, paths ...string) {
	s.t.Helper()
	for _, p := range paths {
		if _, _, err := zk.Create(s.t.Context(), p, []byte("data of "+p), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestExplore_Sessions(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	zk := s.connect()
	id := fmt.Sprintf("0x%x", uint64(zk.Session().ID))
	s.create(zk, client.CreateOptions{Ephemeral: true}, "/mine")
	for _, p := range []string{"/mine", "/other"} {
		if err := zk.AddWatch(t.Context(), p, proto.AddWatchPersistentRecursive); err != nil {
			t.Fatal(err)
		}
	}
	r := s.want(200, `"ephemerals":1`, "GET", "/ui/api/sessions?id="+id, "")
	for _, part := range []string{`"id":"` + id + `"`, `"connected":true`, `"watches":2`, `"heard":1`, `"total":`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("%s lacks %s", r.body, part)
		}
	}
	s.want(200, `"path":"/mine","session":"`+id+`"`, "GET", "/ui/api/watches?path=/mine", "")
	if r := s.want(200, `"truncated":true`, "GET", "/ui/api/watches?limit=1", ""); strings.Contains(r.body, "/other") {
		t.Error(r.body)
	}
	s.want(200, `"watches":[]`, "GET", "/ui/api/watches?address=10.1.2.3", "")
	s.want(200, `/other`, "GET", "/ui/api/watches?path=/*&session="+id, "")
	s.want(400, "hexadecimal", "POST", "/ui/api/sessions/x/end", "")
	s.want(200, id, "POST", "/ui/api/sessions/"+id+"/end", "")
	<-zk.Done()
	s.want(404, "no session", "POST", "/ui/api/sessions/"+id+"/end", "")
}

// A session that ended is found by each of its parameters and by words of its story, and by no
// others. The list is bounded, and so are the paths of a session.
func TestExplore_Ended(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	first, second := s.connect(), s.connect()
	id := fmt.Sprintf("0x%x", uint64(first.Session().ID))
	for i := range 12 {
		s.create(first, client.CreateOptions{Ephemeral: true}, fmt.Sprintf("/worker-%d", 10+i))
	}
	s.want(200, `{"ended":[]}`, "GET", "/ui/api/ended?session="+id, "")
	s.want(200, id, "POST", "/ui/api/sessions/"+id+"/end", "")
	<-first.Done()
	for _, query := range []string{"session=" + id, "path=/worker-21", "filter=ker-21", "filter=an+administrator", "path=/worker-21&limit=1"} {
		r := s.want(200, `"session":"`+id+`"`, "GET", "/ui/api/ended?"+query, "")
		for _, part := range []string{"an administrator, or the embedding program, ended it", `"more_ephemerals":2`, "/worker-19"} {
			if !strings.Contains(r.body, part) || strings.Contains(r.body, "/worker-20") || strings.Contains(r.body, "truncated") {
				t.Errorf("%s: %s lacks %s, or has more paths than ten, or is truncated", query, r.body, part)
			}
		}
	}
	for _, query := range []string{"session=0x1", "address=10.0.0.1", "path=/worker-", "filter=nothing", "session=" + id + "&filter=nothing"} {
		s.want(200, `{"ended":[]}`, "GET", "/ui/api/ended?"+query, "")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if r := s.want(200, `its client closed it`, "GET", "/ui/api/ended?limit=1", ""); !strings.Contains(r.body, `"truncated":true`) || strings.Contains(r.body, id) {
		t.Errorf("%s: not the newest alone", r.body)
	}
	s.want(400, "limit", "GET", "/ui/api/ended?limit=0", "")
}

// A client with TLS is shown as one, whatever port it came to.
func TestExplore_TLS(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	for _, encrypted := range []bool{false, true} {
		zk, err := client.Connect(t.Context(), client.Config{Servers: []string{"127.0.0.1:2181"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return s.s.DialAs(ctx, server.Caller{TLS: encrypted})
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = zk.Close() })
		if _, _, err := zk.Exists(t.Context(), "/none", true); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("0x%x", uint64(zk.Session().ID))
		for _, path := range []string{"/ui/api/sessions?id=" + id, "/ui/api/watches?session=" + id} {
			if r := s.want(200, id, "GET", path, ""); strings.Contains(r.body, `"tls":true`) != encrypted {
				t.Errorf("%s, encrypted %v: %s", path, encrypted, r.body)
			}
		}
	}
}

// The view of the ensemble says what is full. Callers who are neither administrators nor on this
// machine do not see the paths.
func TestExplore_SaysWhatIsFull(t *testing.T) {
	s := open(t, server.Config{DataLimit: 1}, web.Options{Anonymous: web.Read, ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Roles: roles(t, "read=sasl:ann; admin=sasl:boss")})
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late := watchdog.Context(t, time.Minute); s.s.Facts().Stats().Growth.Largest == nil; <-look.C {
		if late.Err() != nil {
			t.Fatal("not full after a minute")
		}
	}
	const text, paths, end = `"dataStatus":"data limit reached: 426 B of 1 B; the memory of server 1 decides; growth is refused, because that leaves no room for data; `,
		`largest subtrees: /zookeeper 333 B, / 93 B; `, `raise gozkd.dataLimitKB or the memory of that server"`
	for user, want := range map[string]string{"boss": text + paths + end, "ann": text + end} {
		s.want(200, want, "GET", "/ui/api/ensemble", "", "X-Forwarded-For: 10.0.0.9", "X-User: "+user)
	}
}

// What pages of the explorer read is not among the hot paths. What they write is, since any program
// can send their header. Programs in a browser, and those that send its headers, are no such pages.
func TestExplore_HotPathsOfPages(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	const page = "Gozkd-Page: 1"
	s.want(201, "", "POST", "/znodes/v2/?name=a", "", page)
	s.want(200, "", "GET", "/znodes/v2/a", "", page)
	s.want(200, "", "HEAD", "/znodes/v2/a", "", page)
	s.want(204, "", "DELETE", "/znodes/v2/a", "", page, "If-Match: *")
	s.want(404, "", "GET", "/znodes/v2/b", "", "Sec-Fetch-Site: same-origin")
	hot := s.s.Facts().Hot()
	for ; len(hot.Paths) < 2; hot = s.s.Facts().Hot() { // what was asked in this second is not counted yet
		time.Sleep(20 * time.Millisecond)
	}
	if len(hot.Paths) != 2 || hot.Paths[0].Path != "/a" || hot.Paths[0].Reads != 0 || hot.Paths[0].Writes == 0 || hot.Paths[1].Path != "/b" {
		t.Errorf("%+v", hot.Paths)
	}
}

// Callers who are neither administrators nor on this machine do not see other clients.
func TestExplore_RolesOfFacts(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read, Roles: roles(t, "read=sasl:ann; admin=sasl:boss"),
		ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s.connect()
	as := func(user string) []string { return []string{"X-Forwarded-For: 10.0.0.9", "X-User: " + user} }
	for _, path := range []string{"/ui/api/sessions", "/ui/api/ended", "/ui/api/watches"} {
		s.want(200, "", "GET", path, "", as("boss")...)
		s.want(403, "role admin", "GET", path, "", as("ann")...)
	}
	s.want(200, `"hot"`, "GET", "/ui/api/activity", "", as("boss")...)
	if r := s.want(200, `"received"`, "GET", "/ui/api/activity", "", as("ann")...); strings.Contains(r.body, `"hot"`) || strings.Contains(r.body, `"slow"`) {
		t.Error(r.body)
	}
	s.want(200, `"members":[{`, "GET", "/ui/api/ensemble", "", as("ann")...)
	for _, request := range []string{"POST /ui/api/sessions/0x1/end", "POST /ui/api/delete", "POST /ui/api/import?root=/a"} {
		method, path, _ := strings.Cut(request, " ")
		s.want(403, "role", method, path, "{}", as("ann")...)
		s.want(401, "", method, path, "{}")
	}
}

func TestExplore_Locks(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	a, b := s.connect(), s.connect()
	s.create(a, client.CreateOptions{}, "/m", "/n", "/secret")
	contender := client.CreateOptions{Ephemeral: true, Sequential: true}
	s.create(a, contender, "/m/_c_00000000-0000-0000-0000-000000000001-lock-")
	s.create(b, contender, "/m/_c_00000000-0000-0000-0000-000000000002-lock-", "/n/_c_00000000-0000-0000-0000-000000000003-lock-")
	s.create(a, contender, "/n/_c_00000000-0000-0000-0000-000000000004-lock-", "/secret/lock-")
	if _, err := a.SetACL(t.Context(), "/secret", []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}, -1); err != nil {
		t.Fatal(err)
	}
	type lists struct {
		Locks []struct {
			Path  string
			Queue []struct {
				Session string
				Holds   bool
			}
		}
		Cycles []struct{ Sessions []string }
		Denied int
	}
	got := decode[lists](t, s.want(200, "", "GET", "/ui/api/locks", ""))
	if len(got.Locks) != 2 || len(got.Cycles) != 1 || len(got.Cycles[0].Sessions) != 2 || got.Denied != 1 {
		t.Fatalf("%+v", got)
	}
	if q := got.Locks[0].Queue; len(q) != 2 || !q[0].Holds || q[1].Holds || q[0].Session != fmt.Sprintf("0x%x", uint64(a.Session().ID)) {
		t.Errorf("%+v", q)
	}
	if got := decode[lists](t, s.want(200, "", "GET", "/ui/api/locks?root=/n", "")); len(got.Locks) != 1 || len(got.Cycles) != 0 {
		t.Errorf("%+v", got)
	}
	if got := decode[lists](t, s.want(200, "", "GET", "/ui/api/lock?path=/m", "")); len(got.Locks) != 1 {
		t.Errorf("%+v", got)
	}
	s.want(400, "path", "GET", "/ui/api/lock", "")
}

func TestExplore_Search(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	zk := s.connect()
	s.create(zk, client.CreateOptions{}, "/app", "/app/config", "/app/other", "/app/Config2", "/hidden", "/hidden/config")
	if _, err := zk.SetACL(t.Context(), "/hidden", []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}, -1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ query, want string }{
		{"name=config&root=/app", "/app/Config2 /app/config complete"},
		{"name=conf*&root=/app", "/app/config complete"},
		{"name=^c.*g$&regexp&root=/app", "/app/config complete"},
		{"content=of+/app/o", "/app/other complete"},
		{"content=OF+/A.*OTHER&regexp", "/app/other complete"},
		{"name=config&content=other", "complete"},
		{"name=config&limit=1", "/app/Config2 limit"},
	} {
		r := s.want(200, "event: end", "GET", "/ui/api/search?"+c.query, "")
		var got []string
		for line := range strings.Lines(r.body) {
			if data, ok := strings.CutPrefix(line, `data: {"path":"`); ok {
				path, _, _ := strings.Cut(data, `"`)
				got = append(got, path)
			}
			if _, reason, ok := strings.Cut(line, `"reason":"`); ok {
				got = append(got, strings.TrimRight(reason, "\"}\n"))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.query, got, c.want)
		}
	}
	s.want(400, "search for", "GET", "/ui/api/search", "")
	s.want(400, "missing closing", "GET", "/ui/api/search?name=(&regexp", "")
}

func TestExplore_SubtreesAndFiles(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	zk := s.connect()
	s.create(zk, client.CreateOptions{}, "/a", "/a/b", "/a/c", "/into")
	s.create(zk, client.CreateOptions{Container: true}, "/a/box")
	s.create(zk, client.CreateOptions{Ephemeral: true}, "/a/b/e")
	s.want(200, `"znodes":5`, "GET", "/ui/api/subtree?root=/a", "")
	exported := s.want(200, `"path":"/box","kind":"container"`, "GET", "/ui/api/export?root=/a", "")
	s.want(200, `"created":4`, "POST", "/ui/api/import?root=/copy", exported.body)
	s.want(409, `-110`, "POST", "/ui/api/import?root=/copy", exported.body)
	s.want(200, `"kept":`, "POST", "/ui/api/import?root=/copy&existing=keep", exported.body)
	s.want(400, "truncated", "POST", "/ui/api/import?root=/into", exported.body[:strings.Index(exported.body, `{"end"`)])
	if _, err := zk.Set(t.Context(), "/copy/c", []byte("new"), -1); err != nil {
		t.Fatal(err)
	}
	r := s.want(200, "event: end", "GET", "/ui/api/compare?left=/a&right=/copy", "")
	if n := strings.Count(r.body, "event: difference"); n != 2 || !strings.Contains(r.body, `"path":"/c"`) || !strings.Contains(r.body, `"path":"/b/e"`) {
		t.Error(r.body)
	}
	s.want(400, "confirm", "POST", "/ui/api/delete", `{"path":"/a","confirm":"/b"}`)
	s.want(400, "cannot be deleted", "POST", "/ui/api/delete", `{"path":"/","confirm":"/"}`)
	s.want(404, "-101", "POST", "/ui/api/delete", `{"path":"/none","confirm":"/none"}`)
	s.want(400, "zxid", "POST", "/ui/api/delete", `{"path":"/a","confirm":"/a","zxid":"x"}`)
	shown := decode[struct{ Zxid string }](t, s.want(200, `"znodes":5`, "GET", "/ui/api/subtree?root=/a", "")).Zxid
	if _, err := zk.Set(t.Context(), "/a/c", []byte("not seen"), -1); err != nil {
		t.Fatal(err)
	}
	s.want(412, "/a/c was", "POST", "/ui/api/delete", `{"path":"/a","confirm":"/a","zxid":"`+shown+`"}`)
	shown = decode[struct{ Zxid string }](t, s.want(200, `"znodes":5`, "GET", "/ui/api/subtree?root=/a", "")).Zxid
	s.want(400, "limit", "POST", "/ui/api/delete", `{"path":"/a","confirm":"/a","limit":-1}`)
	s.want(413, "/a goes deeper than 1 znodes: delete /a/b first", "POST", "/ui/api/delete", `{"path":"/a","confirm":"/a","limit":1}`)
	// In rounds: /a goes in the last one.
	for _, round := range []string{`{"deleted":2,"of":2,"more":true}`, `{"deleted":3,"of":3}`} {
		s.want(200, "event: end\ndata: "+round, "POST", "/ui/api/delete", `{"path":"/a","confirm":"/a","limit":3,"zxid":"`+shown+`"}`)
	}
	s.want(404, "", "HEAD", "/znodes/v2/a", "")
	s.want(501, "gozkd history", "GET", "/ui/api/history?path=/copy", "")
	s.want(404, "-101", "GET", "/ui/api/export?root=/a", "")
	s.want(400, "zstd", "POST", "/ui/api/decode?as=zstd", "not zstd")
}

// Slow requests are those of the log; paths and sessions are not for every reader.
func TestExplore_SlowRequests(t *testing.T) {
	s := open(t, server.Config{SlowRequest: time.Nanosecond}, web.Options{Anonymous: web.Read})
	zk := s.connect()
	s.create(zk, client.CreateOptions{}, "/slow")
	type answer struct {
		Slow struct {
			FromMs   int64
			Requests []struct {
				Op, Path, Session string
				TookMs            float64
				Time              int64
			}
		}
	}
	for { // the request is recorded after its reply was written
		for _, r := range decode[answer](t, s.want(200, "", "GET", "/ui/api/activity", "")).Slow.Requests {
			if r.Path != "/slow" {
				continue
			}
			if r.Op != "create2" || r.Session != fmt.Sprintf("0x%x", uint64(zk.Session().ID)) || r.TookMs <= 0 || r.Time == 0 {
				t.Errorf("%+v", r)
			}
			return
		}
	}
}

// Text keeps what looks like the name of a package in a path.
func TestProblem_Paths(t *testing.T) {
	invalid := proto.ValidatePath("/a//server: 1")
	for want, err := range map[string]error{
		`invalid path "/a//server: 1": empty name at byte 3`: invalid,
		`invalid path "x: proto: y": must start with /`:      proto.ValidatePath("x: proto: y"),
		`load: a server: b`: errors.New("server: load: a server: b"),
		`invalid path`:      fmt.Errorf("client: %w", proto.ErrInvalidPath),
		`create /client: a: bad arguments (-8): closed`: &client.Error{Op: "create", Path: "/client: a", Code: proto.ErrBadArguments, Cause: errors.New("closed")},
	} {
		if got := printable.Error(err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
