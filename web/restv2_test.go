package web_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestV2_DataAndVersions(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	r := s.want(201, `"path":"/a"`, "POST", "/znodes/v2/?name=a", "one")
	if r.Header.Get("Location") != "/znodes/v2/a" || !strings.HasSuffix(r.Header.Get("ETag"), `-0"`) {
		t.Errorf("%v", r.Header)
	}
	s.want(200, `"data":"`+b64("one")+`"`, "GET", "/znodes/v2/a", "")
	r = s.want(200, "one", "GET", "/znodes/v2/a", "", "Accept: application/octet-stream")
	if r.body != "one" || r.Header.Get("Content-Disposition") != "attachment" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q, %v", r.body, r.Header)
	}
	s.want(428, "If-Match", "PUT", "/znodes/v2/a", "two")
	s.want(200, `"version":1`, "PUT", "/znodes/v2/a", "two", `If-Match: "0"`)
	s.want(412, `"version":1`, "PUT", "/znodes/v2/a", "three", `If-Match: "0"`)
	s.want(200, `"version":2`, "PUT", "/znodes/v2/a", "", "If-Match: *")
	s.want(200, `"data":""`, "GET", "/znodes/v2/a", "")
	s.want(412, `"code":-110`, "PUT", "/znodes/v2/a", "", "If-None-Match: *")
	s.want(201, `"path":"/b"`, "PUT", "/znodes/v2/b", "", "If-None-Match: *")
	s.want(404, `"code":-101`, "GET", "/znodes/v2/c", "")
	s.want(404, "", "HEAD", "/znodes/v2/c", "")
	s.want(200, "", "HEAD", "/znodes/v2/a", "")
	s.want(409, `"code":-110`, "POST", "/znodes/v2/?name=a", "")
	s.want(412, `"code":-103`, "DELETE", "/znodes/v2/a", "", `If-Match: "7"`)
	s.want(204, "", "DELETE", "/znodes/v2/a", "", `If-Match: "2"`)
	s.want(405, "", "OPTIONS", "/znodes/v2/a", "")
	for _, tag := range []string{"", "7", `"x"`, `"-1"`, `"acl-1-0-1-0"`, `"1-x"`, `"1", "2"`, `W/"1"`, `"5-0-5-0", "6-0-6-0"`} {
		s.want(400, "If-Match", "DELETE", "/znodes/v2/b", "", "If-Match: "+tag)
	}
}

// Behind a proxy that serves a part of its paths, addresses begin with that part.
func TestV2_Prefix(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	for i, c := range [][2]string{{"/zk/", "/zk"}, {"/a/b", "/a/b"}, {"//evil.example", ""}, {"/\\evil", ""}, {"https://evil.example", ""}, {"", ""}} {
		r := s.want(201, "", "POST", fmt.Sprintf("/znodes/v2/?name=n%d", i), "", "X-Forwarded-Prefix: "+c[0])
		if want := fmt.Sprintf("%s/znodes/v2/n%d", c[1], i); r.Header.Get("Location") != want {
			t.Errorf("%q: %s, want %s", c[0], r.Header.Get("Location"), want)
		}
	}
}

// An ETag changes with what its representation shows, and with nothing else.
func TestV2_ETags(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(201, "", "POST", "/znodes/v2/?name=a", "one")
	tag := func(query, accept string) string {
		return s.want(200, "", "HEAD", "/znodes/v2/a"+query, "", "Accept: "+accept).Header.Get("ETag")
	}
	tags := func() [3]string {
		return [3]string{tag("", "application/octet-stream"), tag("", "application/json"), tag("?acl", "*/*")}
	}
	before := tags()
	for _, step := range []struct {
		about   string
		change  func()
		changes [3]bool // the bytes, the JSON, the ACL
	}{
		{"nothing", func() {}, [3]bool{}},
		{"a child", func() { s.want(201, "", "POST", "/znodes/v2/a?name=b", "") }, [3]bool{false, true, true}},
		{"its end", func() { s.want(204, "", "DELETE", "/znodes/v2/a/b", "", "If-Match: *") }, [3]bool{false, true, true}},
		{"data", func() { s.want(200, "", "PUT", "/znodes/v2/a", "two", "If-Match: "+before[1]) }, [3]bool{true, true, true}},
		{"an ACL", func() {
			s.want(200, "", "PUT", "/znodes/v2/a?acl", `{"acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}`, "If-Match: "+before[2])
		}, [3]bool{false, true, true}},
		{"created again", func() {
			s.want(204, "", "DELETE", "/znodes/v2/a", "", "If-Match: "+before[0])
			s.want(201, "", "POST", "/znodes/v2/?name=a", "two")
		}, [3]bool{true, true, true}},
	} {
		step.change()
		after := tags()
		for i := range after {
			if (after[i] != before[i]) != step.changes[i] {
				t.Errorf("%s: tag %d is %s after %s", step.about, i, after[i], before[i])
			}
		}
		before = after
	}
	if before[0] == before[1] || before[1] == before[2] {
		t.Errorf("representations share a tag: %q", before)
	}
	s.want(304, "", "GET", "/znodes/v2/a", "", `If-None-Match: "x", W/`+before[1])
	s.want(304, "", "GET", "/znodes/v2/a?acl", "", "If-None-Match: "+before[2])
	s.want(304, "", "GET", "/znodes/v2/a", "", "Accept: application/octet-stream", "If-None-Match: "+before[0])
	s.want(200, "", "GET", "/znodes/v2/a", "", "If-None-Match: "+before[0])
}

func TestV2_KindsOfZnodes(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(201, `"kind":"container"`, "POST", "/znodes/v2/?name=c&mode=container", "")
	s.want(201, `"kind":"ttl","ttlMs":60000`, "POST", "/znodes/v2/?name=t&ttl=60000", "")
	s.want(201, `"path":"/q0000000002"`, "POST", "/znodes/v2/?name=q&sequential", "")
	s.want(400, "session", "POST", "/znodes/v2/?name=e&mode=ephemeral", "")
	s.want(400, "mode", "POST", "/znodes/v2/?name=e&mode=x", "")
	s.want(400, "name", "POST", "/znodes/v2/", "")
	s.want(400, "name", "POST", "/znodes/v2/?name=a/b", "")
	s.want(400, "unknown here", "POST", "/znodes/v2/?name=a&title=b", "")
	s.want(400, "occurs 2 times", "POST", "/znodes/v2/?name=a&name=b", "")
	s.want(400, "ttl", "POST", "/znodes/v2/?name=a&ttl=0", "")
}

// Every path that ZooKeeper allows has exactly one URL, and no URL names another.
func TestV2_Paths(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	for _, name := range []string{"ä ö", "a%2Fb", "q?x=1", "#", "a;b", "+", "<b>", `"`, "...", "openapi.json", "日本"} {
		r := s.want(201, "", "POST", "/znodes/v2/?name="+url.QueryEscape(name), name)
		s.want(200, `"data":"`+b64(name)+`"`, "GET", r.Header.Get("Location"), "")
	}
	for _, path := range []string{"/znodes/v2/%2e%2e/a", "/znodes/v2/a%2F%2Fb", "/znodes/v2/a/", "/znodes/v2/%00", "/znodes/v2/a%2F..%2Fb", "/znodes/v2/%FF"} {
		s.want(400, "invalid path", "GET", path, "")
	}
}

func TestV2_ACL(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(201, "", "POST", "/znodes/v2/?name=a", "secret")
	s.want(200, `[{"scheme":"world","id":"anyone","perms":"cdrwa"}]`, "GET", "/znodes/v2/a?acl", "")
	s.want(400, "cdrwa", "PUT", "/znodes/v2/a?acl", `{"acl":[{"scheme":"world","id":"anyone","perms":"x"}]}`, `If-Match: "0"`)
	s.want(200, `"aversion":1`, "PUT", "/znodes/v2/a?acl", `{"acl":[{"scheme":"ip","id":"10.0.0.1","perms":"r"}]}`, `If-Match: "0"`)
	s.want(403, `"code":-102`, "GET", "/znodes/v2/a", "")
	s.want(403, `"code":-102`, "PUT", "/znodes/v2/a", "", "If-Match: *")

	// At once with the creation: nobody reads the data before.
	list := url.QueryEscape(`[{"scheme":"ip","id":"10.0.0.1","perms":"cdrwa"}]`)
	s.want(201, "", "POST", "/znodes/v2/?name=b&newAcl="+list, "secret")
	s.want(201, "", "PUT", "/znodes/v2/c?newAcl="+list, "secret", "If-None-Match: *")
	for _, path := range []string{"/znodes/v2/b", "/znodes/v2/c"} {
		s.want(403, `"code":-102`, "GET", path, "")
	}
	s.want(400, "If-None-Match", "PUT", "/znodes/v2/a?newAcl="+list, "", "If-Match: *")
	for _, bad := range []string{"x", "{}", `[{"scheme":"world","id":"anyone","perms":"x"}]`} {
		s.want(400, "cl", "POST", "/znodes/v2/?name=d&newAcl="+url.QueryEscape(bad), "")
	}
}

// Texts of errors have no names of our packages, and a body that does not come is the caller's
// fault.
func TestV2_Errors(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	for _, path := range []string{"/znodes/v2/a/", "/ui/api/subtree?root=x", "/ui/api/search?name=x&root=a"} {
		if r := s.want(400, "invalid path", "GET", path, ""); strings.Contains(r.body, "proto:") {
			t.Error(r.body)
		}
	}
	if r := s.want(413, "", "POST", "/znodes/v2/?name=a", strings.Repeat("x", 1<<20)); strings.Contains(r.body, "client:") {
		t.Error(r.body)
	}
	for _, path := range []string{"/znodes/v2/?name=a", "/ui/api/delete", "/ui/api/import?root=/", "/ui/api/login"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, stalled{})
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		if s.h.ServeHTTP(w, r); w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), "did not come in time") && !strings.Contains(path, "import") {
			t.Error(path, w.Code, w.Body)
		}
	}
}

// stalled is a body of which nothing comes before the deadline of the connection.
type stalled struct{}

func (stalled) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
}

func TestV2_ChildrenInPages(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	for i := range 7 {
		s.want(201, "", "POST", fmt.Sprintf("/znodes/v2/?name=n%d", i), "")
	}
	type page struct {
		Children []struct {
			Name string
			Stat *struct{ DataLength int }
		}
		Next string
	}
	seen, after := "", ""
	for {
		p := decode[page](t, s.want(200, "", "GET", "/znodes/v2/?children&stat&prefix=n&limit=3&after="+after, ""))
		for _, c := range p.Children {
			if seen += c.Name; c.Stat == nil {
				t.Errorf("%s has no stat", c.Name)
			}
		}
		if after = p.Next; after == "" {
			break
		}
	}
	if seen != "n0n1n2n3n4n5n6" {
		t.Error(seen)
	}
	s.want(400, "limit", "GET", "/znodes/v2/?children&limit=1001", "")
	s.want(400, "only one", "GET", "/znodes/v2/?children&acl", "")
}

// A child that the caller may not read is in the list without its stat.
func TestV2_ChildrenThatMayNotBeRead(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(200, "", "PATCH", "/znodes/v2/", `[{"op":"create","path":"/p"},{"op":"create","path":"/p/a"},`+
		`{"op":"create","path":"/p/b","acl":[{"scheme":"ip","id":"10.0.0.1","perms":"r"}]},{"op":"create","path":"/p/c"}]`)
	type page struct {
		Children []struct {
			Name string
			Stat *struct{}
		}
	}
	seen := ""
	for _, c := range decode[page](t, s.want(200, "", "GET", "/znodes/v2/p?children&stat", "")).Children {
		seen += fmt.Sprint(c.Name, c.Stat != nil, " ")
	}
	if seen != "atrue bfalse ctrue " {
		t.Error(seen)
	}
}

func TestV2_Multi(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(200, `"path":"/a/b"`, "PATCH", "/znodes/v2/",
		`[{"op":"create","path":"/a","data":"`+b64("x")+`"},{"op":"create","path":"/a/b","mode":"container"},{"op":"set","path":"/a","data":null,"version":0}]`)
	r := s.want(412, `"index":1`, "PATCH", "/znodes/v2/", `[{"op":"set","path":"/a","version":1},{"op":"check","path":"/a","version":7},{"op":"delete","path":"/a/b","version":0}]`)
	if p := decode[struct{ Path string }](t, r); p.Path != "/a" {
		t.Error(r.body)
	}
	s.want(200, `"version":1`, "GET", "/znodes/v2/a", "") // nothing was carried out
	s.want(400, "version", "PATCH", "/znodes/v2/", `[{"op":"delete","path":"/a"}]`)
	s.want(400, "ephemeral", "PATCH", "/znodes/v2/", `[{"op":"create","path":"/e","mode":"ephemeral"}]`)
	for _, body := range []string{"", "{}", `[{"x":1}]`, "[] []", `[{"op":"x","version":1}]`} {
		s.want(400, "", "PATCH", "/znodes/v2/", body)
	}
}

func TestV2_Bodies(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write, MaxBody: 10})
	s.want(201, "", "POST", "/znodes/v2/?name=a", "0123456789")
	s.want(413, "jute.maxbuffer", "POST", "/znodes/v2/?name=b", "0123456789a")
}
