package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// FuzzRequest: no path, query, header or body makes a handler panic or answer with something else
// than JSON or the bytes of a znode, and a znode's data is never anything that a browser would run.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/znodes/v2/a", "children&stat&limit=3&after=b", ""},
		{"PATCH", "/znodes/v2/", "", `[{"op":"create","path":"/a","data":"eA==","acl":[{"scheme":"world","id":"anyone","perms":"r"}]}]`},
		{"PUT", "/znodes/v2/%2e%2e/%00", "acl", `{"acl":[]}`},
		{"POST", "/znodes/v1/", "op=create&name=%2F&sequence=true&ephemeral=true&session=x", "x"},
		{"POST", "/ui/api/login", "", `{"scheme":"digest","user":"a","password":"b"}`},
		{"GET", "/znodes/v1//../a", "view=children&dataformat=utf8", ""},
		{"POST", "/sessions/v1", "op=create&expire=1e9", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], `"1"`, "application/octet-stream")
	}
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	h := web.New(s, web.Options{Anonymous: web.Write, Rate: 1e9, MaxBody: 4096})
	f.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, method, path, query, body, ifMatch, accept string) {
		if strings.Contains(query, "watch") || strings.Contains(path, "/sessions/") && len(query) > 30 {
			return // a stream would wait
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", strings.NewReader(body))
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return // net/http refuses it
		}
		u.RawQuery = query
		r.Method, r.URL, r.RemoteAddr, r.Host = method, u, "127.0.0.1:1", "127.0.0.1"
		r.Header.Set("If-Match", ifMatch)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		kind := w.Header().Get("Content-Type")
		switch {
		case w.Code >= 500 && w.Code != 501 && w.Code != 502 && w.Code != 503:
			t.Errorf("status %d: %s", w.Code, w.Body)
		case strings.HasPrefix(kind, "text/html") && !strings.HasPrefix(u.Path, "/ui/") && w.Code != 307 && w.Code != 301 && w.Code != 308:
			t.Errorf("HTML: %s", w.Body)
		case strings.HasSuffix(kind, "json") && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()):
			t.Errorf("no JSON: %s", w.Body)
		case w.Header().Get("X-Content-Type-Options") != "nosniff":
			t.Error("no nosniff")
		}
	})
}
