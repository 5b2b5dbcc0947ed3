package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/server"
)

// Commands by who may run them, as docs/reference/monitoring.md lists them.
var (
	forEverybody = strings.Fields(`configuration dirs get_trace_mask hash is_read_only last_snapshot leader monitor observers peers ruok server_stats
		voting_view watch_summary zabstate`)
	forLocal          = strings.Fields("ended_sessions connections dump environment hot initial_configuration stats system_properties watches watches_by_path")
	forChanges        = strings.Fields("connection_stat_reset observer_connection_stat_reset set_trace_mask stat_reset")
	forAdministrators = strings.Fields("expire_session reload restore shed_connections snapshot transfer_leadership")
)

// caller sends requests from somewhere.
type caller struct{ from, authorization, header, host string }

func (c caller) asks(t testing.TB, h http.Handler, command string) *httptest.ResponseRecorder {
	t.Helper()
	method := http.MethodGet
	if slices.Contains(forAdministrators, command) && command != "snapshot" {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/commands/"+command, strings.NewReader(`{"percentage": 0}`))
	r.RemoteAddr = c.from
	r.Host = "127.0.0.1:8080"
	if c.host != "" {
		r.Host = c.host
	}
	if c.authorization != "" {
		r.Header.Set("Authorization", c.authorization)
	}
	if c.header != "" {
		r.Header.Set(c.header, "192.0.2.7")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func tokenFile(t testing.TB, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	here, there = "127.0.0.1:4711", "192.0.2.1:4711"
	token       = "a-token-for-everywhere"
	localToken  = "a-token-for-this-machine"
)

// Every command is in the lists above, and open to exactly those callers, whatever the ACL of the
// root znode.
func TestAccess(t *testing.T) {
	s := start(t, server.Config{})
	use(t, s)
	o := admin.Options{
		Snapshot: true, Shed: true, Interval: -1, Reload: func() error { return nil },
		TokenFile: tokenFile(t, token+"\n"), LocalTokenFile: tokenFile(t, localToken),
	}
	guarded, open := o, o
	open.Open = true
	lists := map[string][]string{"everybody": forEverybody, "local": forLocal, "changes": forChanges, "administrators": forAdministrators}
	listed := regexp.MustCompile(`(?m)^(?:<a [^>]*>)?([a-z_]+)(?:</a>)?$`).FindAllStringSubmatch(get(t, admin.New(s, guarded), "/commands").Body.String(), -1)
	if n := len(forEverybody) + len(forLocal) + len(forChanges) + len(forAdministrators); len(listed) != n {
		t.Errorf("%d commands, and %d in the lists", len(listed), n)
	}
	for what, c := range map[string]struct {
		caller
		o   admin.Options
		may string // lists
	}{
		"a stranger":                    {caller{from: there}, guarded, "everybody"},
		"a stranger with a name":        {caller{from: there, authorization: "digest a:b"}, guarded, "everybody"},
		"a stranger with an address":    {caller{from: there, authorization: "ip"}, guarded, "everybody"},
		"a stranger with a wrong token": {caller{from: there, authorization: "Bearer " + token + "x"}, guarded, "everybody"},
		"a stranger with a prefix":      {caller{from: there, authorization: "Bearer " + token[:16]}, guarded, "everybody"},
		"somebody here with a prefix":   {caller{from: here, authorization: "Bearer " + localToken[:len(localToken)-1]}, guarded, "everybody local"},
		"a stranger with no token":      {caller{from: there, authorization: "Bearer "}, guarded, "everybody"},
		"a stranger, by the local file": {caller{from: there, authorization: "Bearer " + localToken}, guarded, "everybody"},
		"no address":                    {caller{from: "@"}, guarded, "everybody"},
		"a proxy":                       {caller{from: here, header: "X-Forwarded-For"}, guarded, "everybody"},
		"a proxy with the local token":  {caller{from: here, header: "Via", authorization: "Bearer " + localToken}, guarded, "everybody"},
		"a page of another host":        {caller{from: here, host: "example.org:8080"}, guarded, "everybody"},
		"a page with the local token":   {caller{from: here, host: "example.org.", authorization: "Bearer " + localToken}, guarded, "everybody"},
		"somebody here by a name":       {caller{from: here, host: "localhost:8080"}, guarded, "everybody local"},
		"somebody here by IPv6":         {caller{from: here, host: "[::1]"}, guarded, "everybody local"},
		"somebody here":                 {caller{from: here}, guarded, "everybody local"},
		"somebody here on IPv6":         {caller{from: "[::1]:4711"}, guarded, "everybody local"},
		"somebody here with a name":     {caller{from: here, authorization: "digest a:b"}, guarded, "everybody local"},
		"the superuser":                 {caller{from: there, authorization: "digest super:test"}, guarded, "everybody local changes administrators"},
		"a token":                       {caller{from: there, authorization: "bearer " + token}, guarded, "everybody local changes administrators"},
		"a local token":                 {caller{from: here, authorization: "Bearer " + localToken}, guarded, "everybody local changes administrators"},
		"a stranger, open":              {caller{from: there, authorization: "digest a:b"}, open, "everybody local changes"},
		"the superuser, open":           {caller{from: there, authorization: "digest super:test"}, open, "everybody local changes administrators"},
	} {
		h := admin.New(s, c.o) // nobody else's guesses count
		for list, commands := range lists {
			for _, command := range commands {
				w := c.asks(t, h, command)
				refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden || w.Code == http.StatusTooManyRequests
				if refused == strings.Contains(c.may, list) || w.Code >= 500 && command != "restore" {
					t.Errorf("%s: %s: status %d %.200s", what, command, w.Code, w.Body)
				}
			}
		}
	}
	if w := (caller{from: there}).asks(t, admin.New(s, guarded), "snapshot"); strings.Contains(w.Body.String(), o.LocalTokenFile) || !strings.Contains(w.Body.String(), "Bearer TOKEN") {
		t.Errorf("a stranger is told %s", w.Body)
	}
	if w := (caller{from: here}).asks(t, admin.New(s, guarded), "snapshot"); !strings.Contains(w.Body.String(), o.LocalTokenFile) {
		t.Errorf("somebody here is told %s", w.Body)
	}
}

// While the ACL of the root znode is open, a stranger can enter himself there. That makes nobody an
// administrator, except with Options.Open, as in ZooKeeper.
func TestAccess_RootACL(t *testing.T) {
	s := start(t, server.Config{})
	stranger := caller{from: there, authorization: "digest root:pw"}
	guarded, open := admin.New(s, admin.Options{Snapshot: true, Interval: -1}), admin.New(s, admin.Options{Snapshot: true, Interval: -1, Open: true})
	for i, want := range [][2]int{{403, 403}, {403, 200}} {
		if i == 1 {
			closeRoot(t, s)
		}
		for j, h := range []http.Handler{guarded, open} {
			if w := stranger.asks(t, h, "snapshot"); w.Code != want[j] {
				t.Errorf("ACL closed: %t, open: %t: status %d, want %d: %.100s", i == 1, j == 1, w.Code, want[j], w.Body)
			}
		}
	}
}

// An ACL of the root znode for an address admits whom a proxy names only with ForwardedFor.
func TestAccess_ForwardedFor(t *testing.T) {
	s := start(t, server.Config{})
	acl := append(zk.WorldACL(zk.PermRead), zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "192.0.2.7"})
	if _, err := connect(t, s).SetACL("/", acl, -1); err != nil {
		t.Fatal(err)
	}
	o := admin.Options{Snapshot: true, Interval: -1, ForwardedFor: true}
	for _, c := range []struct {
		caller
		open, forwardedFor bool
		status             int
	}{
		{caller{from: "192.0.2.7:4711", authorization: "ip x"}, true, true, 200},
		{caller{from: there, authorization: "ip x", header: "X-Forwarded-For"}, true, true, 200},
		{caller{from: there, authorization: "ip x", header: "X-Forwarded-For"}, true, false, 403},
		{caller{from: there, authorization: "ip x", header: "X-Forwarded-For"}, false, true, 403},
		{caller{from: there, authorization: "ip x"}, true, true, 403},
	} {
		o.Open, o.ForwardedFor = c.open, c.forwardedFor
		if w := c.asks(t, admin.New(s, o), "snapshot"); w.Code != c.status {
			t.Errorf("%+v: status %d: %.100s", c, w.Code, w.Body)
		}
	}
}

// The file is read at each request. A file without a token authorizes nobody.
func TestAccess_TokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	h := admin.New(start(t, server.Config{}), admin.Options{TokenFile: path})
	for _, c := range []struct {
		content, sent string
		status        int
	}{
		{"", "", 401}, {"\n", "", 401}, {"short", "short", 401}, {"0123456789abcdef\n", "0123456789abcdef", 200},
		{"fedcba9876543210", "0123456789abcdef", 401}, {"fedcba9876543210", "fedcba9876543210", 200},
		{strings.Repeat("x", 5000), strings.Repeat("x", 5000), 401},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if w := (caller{from: there, authorization: "Bearer " + c.sent}).asks(t, h, "stat_reset"); w.Code != c.status {
			t.Errorf("%.20q by %.20q: status %d, want %d", c.content, c.sent, w.Code, c.status)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if w := (caller{from: there, authorization: "Bearer "}).asks(t, h, "stat_reset"); w.Code != 401 {
		t.Errorf("without the file: status %d", w.Code)
	}
}

// A page of another site cannot reset counters with a GET, not even where everybody may.
func TestAccess_ResetByOtherSites(t *testing.T) {
	h := admin.New(start(t, server.Config{}), admin.Options{Open: true})
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		for _, command := range forChanges {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/commands/"+command, nil)
			r.Header.Set("Sec-Fetch-Site", site)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s from %s: status %d, want %d", command, site, w.Code, want)
			}
		}
	}
}

// FuzzHandler sends requests of a stranger. Whatever they contain, the answer is well-formed, the
// state stays as it is, and no path, session or data of a client is in it.
func FuzzHandler(f *testing.F) {
	s := start(f, server.Config{})
	c := connect(f, s)
	const secret = "s3cret-name"
	if _, err := c.Create("/"+secret, []byte("s3cret-data"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		f.Fatal(err)
	}
	if _, _, _, err := c.GetW("/" + secret); err != nil {
		f.Fatal(err)
	}
	reloads := 0
	h := admin.New(s, admin.Options{
		Snapshot: true, Shed: true, Interval: -1, Reload: func() error { reloads++; return nil },
		TokenFile: tokenFile(f, token), LocalTokenFile: tokenFile(f, localToken), InitialConfiguration: "# s3cret-text",
	})
	for _, list := range [][]string{forEverybody, forLocal, forChanges, forAdministrators} {
		for _, command := range list {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				f.Add(method, "/commands/"+command, "", "digest a:b", "", "", `{"percentage": 100}`)
			}
		}
	}
	f.Add("GET", "/commands/snap", "streaming=true", "Bearer "+localToken, "", "", "")
	f.Add("HEAD", "/commands/snapshot", "streaming=false", "ip 127.0.0.1", "X-Forwarded-For", "127.0.0.1", "")
	f.Add("GET", "/commands/stmk", "traceMask=-1", "super", "Sec-Fetch-Site", "none", "")
	f.Add("GET", "/readyz", "verbose", "", "Accept", "application/json", "")
	f.Add("TRACE", "/livez", "%zz;", "digest  super:", "Content-Length", "-1", "")
	f.Fuzz(func(t *testing.T, method, path, query, authorization, name, value, body string) {
		if strings.Contains(authorization, "super:test") || strings.Contains(authorization, token) {
			t.Skip("that would be no stranger")
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL.Path, r.URL.RawQuery, r.RemoteAddr = method, path, query, there
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		r.Header["Authorization"] = []string{authorization}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer := w.Body.String()
		if w.Code >= 500 {
			t.Errorf("status %d: %.200s", w.Code, answer)
		}
		if typ := w.Header().Get("Content-Type"); typ == "application/json" && !json.Valid(w.Body.Bytes()) || typ == "application/octet-stream" {
			t.Errorf("%s: %.200q", typ, answer)
		}
		for _, word := range []string{"s3cret", localToken, here[:9] + ":", "192.0.2.1"} {
			if strings.Contains(answer, word) && !strings.Contains(path, word) {
				t.Errorf("%q is in %.500q", word, answer)
			}
		}
		if reloads > 0 || len(s.Facts().Connections()) != 1 || s.Facts().TraceMask() != 306 {
			t.Fatalf("%d reloads, %d connections, trace mask %d", reloads, len(s.Facts().Connections()), s.Facts().TraceMask())
		}
	})
}
