package web_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// Attacks on the handler. docs/quality/attacks.md lists them.

// A page of another origin sends what forms and scripts can send without asking first.
func TestAttack_ForeignPages(t *testing.T) {
	s := open(t, users(nil), web.Options{Anonymous: web.Write, Roles: roles(t, "admin=sasl:bob")})
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	for _, origin := range []string{"Origin: http://evil.example.org", "Origin: null", "Origin: " + other, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/json"} {
			for _, request := range []string{"POST /znodes/v2/?name=a", "POST /znodes/v1/?op=create&name=a", "POST /sessions/v1?op=create&expire=9", "POST /ui/api/login",
				"POST /ui/api/logout", "POST /ui/api/delete", "POST /ui/api/import?root=/", "POST /ui/api/sessions/0x1/end", "PATCH /znodes/v2/"} {
				method, path, _ := strings.Cut(request, " ")
				s.want(403, "another origin", method, path, `[{"op":"create","path":"/a"}]`, origin, "Content-Type: "+kind)
			}
		}
	}
	s.want(404, "", "HEAD", "/znodes/v2/a", "")
}

// Names and data that a browser would run are never HTML.
func TestAttack_Scripts(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	const name, script = `%3Cimg%20src=x%20onerror=alert(1)%3E`, `<script>alert(1)</script>`
	s.want(201, "", "POST", "/znodes/v2/?name="+name, script)
	all, bytes := "Accept: */*", "Accept: text/html, application/octet-stream"
	for _, c := range []struct{ method, path, body, header string }{
		{"GET", "/znodes/v2/" + name, "", all}, {"GET", "/znodes/v2/" + name, "", bytes}, {"GET", "/znodes/v1/" + name, "", bytes},
		{"GET", "/znodes/v1/" + name + "?dataformat=utf8", "", all}, {"GET", "/znodes/v2/?children&stat", "", "Accept: text/html"},
		{"GET", "/znodes/v1/?view=children", "", all}, {"GET", "/znodes/v1/%3Cscript%3E", "", bytes}, {"GET", "/ui/api/export", "", all},
		{"GET", "/ui/api/search?name=img", "", all}, {"GET", "/ui/" + name, "", all}, {"GET", "/" + name, "", all}, {"POST", "/znodes/v2/?name=" + name, "", all},
		{"GET", "/znodes/v2/?watch=" + name, "", all}, {"GET", "/ui/api/lock?path=" + name, "", all}, {"POST", "/ui/api/decode?as=" + name, "", all},
	} {
		r := s.ask(c.method, c.path, c.body, c.header)
		h := r.Header
		switch kind := h.Get("Content-Type"); {
		case strings.Contains(kind, "html"), strings.Contains(kind, "xml"), strings.Contains(kind, "javascript"), kind == "":
			t.Errorf("%s: Content-Type %q", c.path, kind)
		case h.Get("X-Content-Type-Options") != "nosniff", !strings.Contains(h.Get("Content-Security-Policy"), "script-src 'self'"):
			t.Errorf("%s: %v", c.path, h)
		case strings.HasPrefix(kind, "application/octet") && h.Get("Content-Disposition") != "attachment":
			t.Errorf("%s: Content-Disposition %q", c.path, h.Get("Content-Disposition"))
		case strings.HasSuffix(kind, "/json") && strings.Contains(r.body, "<"):
			t.Errorf("%s: %s", c.path, r.body)
		}
	}
}

// A request that is too large for the server must not break the session that callers share.
func TestAttack_LargeRequests(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	st := s.stream("/znodes/v2/a?watch", "")
	st.want("")
	large := strings.Repeat("x", server.DefaultMaxBuffer)
	s.want(413, "too large", "POST", "/znodes/v2/?name=a", large)
	s.want(413, "too large", "POST", "/znodes/v1/?op=create&name=a", large, octets)
	var multi strings.Builder
	for i := range 1000 { // a short line each, and more bytes in the request
		fmt.Fprintf(&multi, `,{"op":"create","path":"/%s%d"}`, strings.Repeat("x", 1010), i)
	}
	s.want(413, "too large", "PATCH", "/znodes/v2/", "["+multi.String()[1:]+"]")
	s.want(201, "", "POST", "/znodes/v2/?name=a", large[:len(large)-100])
	st.want("created /a") // and no reset
}

// A deleted znode that exists again has the same version, and another ETag.
func TestAttack_CreatedAgain(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	tag := s.want(201, "", "POST", "/znodes/v2/?name=a", "old").Header.Get("ETag")
	s.want(204, "", "DELETE", "/znodes/v2/a", "", "If-Match: "+tag)
	s.want(201, "", "POST", "/znodes/v2/?name=a", "new")
	s.want(200, b64("new"), "GET", "/znodes/v2/a", "", "If-None-Match: "+tag)
	s.want(412, `"code":-103`, "PUT", "/znodes/v2/a", "overwritten", "If-Match: "+tag)
	s.want(412, `"code":-103`, "DELETE", "/znodes/v2/a", "", "If-Match: "+tag)
	s.want(412, `"code":-103`, "PUT", "/znodes/v2/a?acl", `{"acl":[{"scheme":"world","id":"anyone","perms":"r"}]}`, "If-Match: "+strings.Replace(tag, `"`, `"acl-`, 1))
	s.want(200, b64("new"), "GET", "/znodes/v2/a", "")
}

// A request with two lengths is the last one of its connection.
func TestAttack_TwoLengths(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }() // its answers were read
	const second = "POST /znodes/v2/?name=b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	if _, err := fmt.Fprintf(nc, "POST /znodes/v2/?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(second), second); err != nil {
		t.Fatal(err)
	}
	answers, err := io.ReadAll(nc)
	if err != nil || strings.Count(string(answers), "HTTP/1.1 ") != 1 {
		t.Errorf("%s, %v", answers, err)
	}
	s.want(404, "", "HEAD", "/znodes/v2/b", "")
}

// byProxy is a site behind a proxy that names users.
func byProxy(t *testing.T, o web.Options) *site {
	o.ProxyHeader, o.Proxies = "X-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	o.Roles = roles(t, "read=sasl:bob; write=sasl:ann")
	return open(t, users(nil), o)
}

// A page whose host name resolves to this machine comes from the address of a proxy here, and may
// send any header: it is not the proxy.
func TestAttack_RebindingByProxy(t *testing.T) {
	s := byProxy(t, web.Options{Hosts: []string{"zk.example.org"}})
	for _, origin := range []string{"Sec-Fetch-Site: same-origin", "Origin: http://evil.example.org"} {
		s.want(421, "gozkd.web.hosts", "POST", "/znodes/v2/?name=a", "", "X-User: ann", "Host: evil.example.org", origin)
	}
	s.want(421, "gozkd.web.hosts", "GET", "/znodes/v2/", "", "X-User: ann", "Host: evil.example.org")
	s.want(201, "", "POST", "/znodes/v2/?name=b", "", "X-User: ann", "Host: zk.example.org")
	// Another machine's proxy decides itself.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://anything.example.org/identity/v2", nil)
	r.RemoteAddr = "10.0.0.1:1"
	h := web.New(s.s, web.Options{Roles: roles(t, "read=sasl:bob"), ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}})
	defer h.Close()
	r.Header.Set("X-User", "bob")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `"role":"read"`) {
		t.Error(w.Code, w.Body)
	}
}

// A caller has the same bounds from many addresses as from one.
func TestAttack_ManyAddresses(t *testing.T) {
	s := byProxy(t, web.Options{})
	for i := range 64 {
		s.want(201, "", "POST", "/sessions/v1?op=create&expire=3600", "", "X-User: ann", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i))
	}
	s.want(429, "sessions", "POST", "/sessions/v1?op=create&expire=3600", "", "X-User: ann", "X-Forwarded-For: 10.0.1.1")
}

// The pool of client sessions gives way to new callers.
func TestAttack_ManyCallers(t *testing.T) {
	s := byProxy(t, web.Options{})
	for i := range 140 {
		s.want(200, "", "GET", "/znodes/v2/", "", "X-User: bob", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i))
	}
	if n := s.h.Stats().Shared; n != 128 {
		t.Errorf("%d sessions", n)
	}
}

// An identity does not keep others out with a stream from each of many addresses.
func TestAttack_ManyAddressesOfStreams(t *testing.T) {
	s := byProxy(t, web.Options{})
	from := func(i int) []string { return []string{"X-User: bob", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i)} }
	for i := range 64 {
		s.stream("/znodes/v2/?watch", "", from(i)...)
	}
	s.want(429, "64 addresses", "GET", "/znodes/v2/", "", from(64)...)
	s.want(200, "", "GET", "/znodes/v2/", "", from(63)...)
	s.want(200, "", "GET", "/znodes/v2/", "", "X-User: ann", "X-Forwarded-For: 10.0.0.1")
}

// Requests of a stranger need little room in the audit log.
func TestAttack_LongPathInAudit(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Roles: roles(t, "read=sasl:bob")})
	path := "/znodes/v2/" + strings.Repeat("x", 30_000)
	s.want(401, "", "DELETE", path, "", elsewhere)
	s.want(401, "", "DELETE", path, "", basic("eve", "pw"))
	n := 0
	log.has(func(e *audit.Event) bool {
		if e.Operation == audit.Admin {
			if n++; !strings.HasPrefix(e.Detail, "DELETE /znodes/v2/xxx") || len(e.Detail) > 1100 {
				t.Errorf("%d bytes: %.300s", len(e.Detail), e.Detail)
			}
		}
		return false
	})
	if n != 2 {
		t.Errorf("%d events", n)
	}
}

// A reader can write by no path, nor end sessions.
func TestAttack_Privileges(t *testing.T) {
	s := byProxy(t, web.Options{Anonymous: web.Admin})
	s.want(201, "", "POST", "/znodes/v2/?name=a", "", "X-User: ann")
	for _, request := range []string{
		"PUT /znodes/v2/a", "PUT /znodes/v2/a?acl", "POST /znodes/v2/?name=b", "DELETE /znodes/v2/a", "PATCH /znodes/v2/", "PUT /znodes/v1/a", "POST /znodes/v1/?op=create&name=b",
		"DELETE /znodes/v1/a", "POST /sessions/v1?op=create&expire=5", "PUT /sessions/v1/x", "DELETE /sessions/v1/x", "POST /ui/api/delete", "POST /ui/api/import?root=/b",
		"POST /ui/api/sessions/0x1/end", "GET /ui/api/sessions", "GET /ui/api/watches", "GET /ui/api/compare?left=/&right=/&connect=127.0.0.1:1",
	} {
		method, path, _ := strings.Cut(request, " ")
		for _, spoofed := range []string{"X-Http-Method-Override: GET", "X-User-Role: admin", "Authorization: digest super:admin", "Cookie: gozkd-0=x"} {
			s.want(403, "role", method, path, `{"path":"/a","confirm":"/a"}`, "X-User: bob", "If-Match: *", spoofed)
		}
	}
	s.want(200, `"version":0,"cversion":0,"aversion":0`, "GET", "/znodes/v2/a", "", "X-User: bob")
	s.want(403, "role admin", "GET", "/ui/api/compare?left=/&right=/&connect=127.0.0.1:1", "", "X-User: ann")
}

// A stream ends with the login of its reader.
func TestAttack_StreamAfterLogout(t *testing.T) {
	s := open(t, users(nil), web.Options{Roles: roles(t, "read=sasl:bob")})
	c := s.want(200, "", "POST", "/ui/api/login", `{"user":"bob","password":"secret"}`).Cookies()[0]
	cookie := "Cookie: " + c.Name + "=" + c.Value
	st := s.stream("/znodes/v2/?watch=recursive", "", cookie)
	st.want("")
	s.want(204, "", "POST", "/ui/api/logout", "", cookie)
	s.create(s.connect(), client.CreateOptions{}, "/secret")
	for st.in.Scan() {
		if strings.Contains(st.in.Text(), "secret") {
			t.Fatal(st.in.Text())
		}
	}
}

// slowReader is a ResponseWriter whose reader stops reading.
type slowReader struct {
	*httptest.ResponseRecorder
	deadline time.Time
	writes   int
	tooLate  time.Duration // how long a write may wait, if that is wrong
}

func (w *slowReader) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func (w *slowReader) FlushError() error { return nil }

func (w *slowReader) Write(b []byte) (int, error) {
	w.writes++
	if wait := time.Until(w.deadline); wait <= 0 || wait > 10*time.Second {
		w.tooLate = wait
	}
	return 0, os.ErrDeadlineExceeded
}

// A stream does not wait for a reader that does not read.
func TestAttack_SlowReader(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	w := &slowReader{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/znodes/v2/?watch", nil)
	r.RemoteAddr = "127.0.0.1:1"
	s.h.ServeHTTP(w, r)
	if left := time.Until(w.deadline); w.writes != 1 || w.tooLate != 0 || left <= 0 || left > 10*time.Second || s.h.Stats().Streams != 0 {
		t.Errorf("%d writes, %v left, %d streams", w.writes, left, s.h.Stats().Streams)
	}
}

// Nor do requests that walk through a subtree, of which four run at once: their readers would keep
// all others waiting.
func TestAttack_SlowReaderOfWalk(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	for _, path := range []string{"/ui/api/export", "/ui/api/search?name=*", "/ui/api/compare?left=/&right=/zookeeper", "/ui/api/subtree?root=/"} {
		w := &slowReader{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		r.RemoteAddr = "127.0.0.1:1"
		func() {
			defer func() { _ = recover() }() // an export that is cut off
			s.h.ServeHTTP(w, r)
		}()
		if w.writes == 0 || w.tooLate != 0 {
			t.Errorf("%s: %d writes, the last of which may wait for %v", path, w.writes, w.tooLate)
		}
	}
}

// closedWriter is a ResponseWriter whose connection is closed as soon as the answer has begun.
type closedWriter struct{ *httptest.ResponseRecorder }

func (w *closedWriter) SetWriteDeadline(time.Time) error {
	if w.Flushed {
		return net.ErrClosed
	}
	return nil
}

// A stream whose connection is closed ends, and is no failure of the server. A stream that would
// not be bounded does not begin.
func TestAttack_ReaderGone(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	unbounded := httptest.NewRecorder()
	for status, w := range map[int]http.ResponseWriter{http.StatusOK: &closedWriter{httptest.NewRecorder()}, http.StatusNotImplemented: unbounded} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/znodes/v2/?watch", nil)
		r.RemoteAddr = "127.0.0.1:1"
		s.h.ServeHTTP(w, r)
		route := web.Route{Path: "/znodes/v2", Class: fmt.Sprintf("%dxx", status/100)}
		if st := s.h.Stats(); st.Requests[route] != 1 || st.Streams != 0 {
			t.Errorf("%d: %+v", status, st)
		}
	}
	if unbounded.Code != http.StatusNotImplemented {
		t.Error(unbounded.Code, unbounded.Body)
	}
}

// unread is a ResponseWriter whose reader reads nothing until the channel is closed.
type unread struct {
	*httptest.ResponseRecorder
	writing chan<- bool
	read    <-chan bool
}

func (w *unread) Write(b []byte) (int, error) {
	select {
	case w.writing <- true:
	case <-w.read:
	}
	<-w.read
	return w.ResponseRecorder.Write(b)
}

// Large answers take memory until they are read, so a caller may leave 16 of them unread.
func TestAttack_UnreadAnswers(t *testing.T) {
	data := strings.Repeat("x", 200<<10)
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write, History: &past{
		page: history.Page{Changes: []history.Change{{Znode: &history.Znode{Data: []byte(data)}}}},
	}})
	s.want(201, "", "POST", "/znodes/v2/?name=a", data)
	s.want(201, "", "POST", "/znodes/v2/?name=many", "")
	for i := range 6 {
		s.want(201, "", "POST", fmt.Sprintf("/znodes/v2/many?name=%s%d", data[:50<<10], i), "", "Content-Type: application/octet-stream")
	}
	writing, read := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	for i := range 16 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1/znodes/v%d/a", 1+i%2), nil)
		r.RemoteAddr = "127.0.0.1:1"
		all.Go(func() { s.h.ServeHTTP(&unread{httptest.NewRecorder(), writing, read}, r) })
	}
	for range 16 {
		<-writing
	}
	s.want(429, "large answers", "GET", "/znodes/v2/a", "")
	s.want(429, "large answers", "GET", "/znodes/v2/a?at=0x1", "")
	s.want(429, "large answers", "GET", "/znodes/v1/a", "", "Accept: application/octet-stream")
	for _, path := range []string{"/znodes/v1/many?view=children", "/znodes/v2/many?children", "/ui/api/subtree?root=/many"} {
		s.want(429, "large answers", "GET", path, "")
	}
	s.want(200, "", "GET", "/znodes/v2/", "")
	close(read)
	all.Wait()
	s.want(200, "", "GET", "/znodes/v2/a", "")
	s.want(200, "", "GET", "/znodes/v2/a?at=0x1", "")
}
