package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/server"
)

// asked is a request and the answer of ZooKeeper 3.9.5, see testdata/README.md.
type asked struct {
	State, Method, Path string
	Authorization       *string
	Status              int
	Page                bool
	Command, Error      *string
	Headers             []string
}

// do sends a request from the loopback address to a handler.
func do(t testing.TB, h http.Handler, method, path string, authorization *string, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost"
	if authorization != nil {
		r.Header["Authorization"] = []string{*authorization}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// closeRoot leaves all permissions on / to root:pw.
func closeRoot(t *testing.T, s *server.Server) {
	t.Helper()
	acl := append(zk.DigestACL(zk.PermAll, "root", "pw"), zk.WorldACL(zk.PermRead)...)
	if _, err := connect(t, s).SetACL("/", acl, -1); err != nil {
		t.Fatal(err)
	}
}

// Each status and text is ZooKeeper's, except where ZooKeeper answers with a page about an
// exception, or without a text, and that an open ACL of the root znode authorizes nobody.
func TestNew_Statuses(t *testing.T) {
	b, err := os.ReadFile("testdata/statuses-3.9.5.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []asked
	if err := json.Unmarshal(b, &all); err != nil || len(all) < 30 {
		t.Fatal(len(all), err)
	}
	handlers := make(map[string]http.Handler)
	for state, o := range map[string]admin.Options{
		"open": {Snapshot: true, Open: true}, "closed": {Snapshot: true, Open: true}, "disabled": {Open: true}, "not serving": {Snapshot: true, Open: true},
	} {
		s := newServer(t, server.Config{})
		if state != "not serving" {
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if state == "closed" || state == "disabled" {
			closeRoot(t, s)
		}
		handlers[state] = admin.New(s, o)
	}
	for _, a := range all {
		what := fmt.Sprintf("%s: %s %s", a.State, a.Method, a.Path)
		if a.Authorization != nil {
			what += fmt.Sprintf(" by %q", *a.Authorization)
		}
		w := do(t, handlers[a.State], a.Method, a.Path, a.Authorization, "")
		if a.Page || a.Status == http.StatusMethodNotAllowed {
			// In ZooKeeper these fail with an exception: the method is wrong, or mntr differs from
			// other commands.
			if w.Code != http.StatusMethodNotAllowed && !strings.HasSuffix(a.Path, "mntr") {
				t.Errorf("%s: status %d", what, w.Code)
			}
			continue
		}
		if strings.HasPrefix(a.Path, "/commands/rest") && a.Method == http.MethodGet { // the method is checked first
			a.Status = http.StatusMethodNotAllowed
		}
		if a.State == "open" && a.Authorization != nil && (a.Status == http.StatusOK || a.Status == http.StatusTooManyRequests) {
			a.Status, a.Command, a.Headers = http.StatusForbidden, nil, nil
		}
		if a.State == "not serving" && a.Method == http.MethodPost && strings.HasSuffix(a.Path, "ruok") {
			a.Status = http.StatusMethodNotAllowed
		}
		if w.Code != a.Status {
			t.Errorf("%s: status %d, want %d\n%s", what, w.Code, a.Status, w.Body)
			continue
		}
		for _, name := range a.Headers {
			if got := w.Header()[name]; len(got) != 1 || got[0] == "" { //nolint:staticcheck // as ZooKeeper writes them
				t.Errorf("%s: header %s is %q", what, name, got)
			}
		}
		if a.Command == nil || a.Status == http.StatusMethodNotAllowed {
			continue
		}
		var says struct{ Command, Error *string }
		if err := json.Unmarshal(w.Body.Bytes(), &says); err != nil || says.Command == nil || *says.Command != *a.Command {
			t.Errorf("%s: %v, %s", what, err, w.Body)
		}
		switch {
		case a.Error != nil && (says.Error == nil || *says.Error != *a.Error):
			t.Errorf("%s: %s, want error %q", what, w.Body, *a.Error)
		case a.Error == nil && a.Status >= 400 && says.Error == nil:
			t.Errorf("%s: there is no reason in %s", what, w.Body)
		case a.Error == nil && a.Status < 400 && says.Error != nil:
			t.Errorf("%s: %s", what, w.Body)
		}
	}
}

var root = "digest super:test"

// A page of another site in a browser cannot send a command. A program, which sends no origin, can.
func TestNew_OtherSites(t *testing.T) {
	s := start(t, server.Config{})
	reloads := 0
	h := admin.New(s, admin.Options{Shed: true, Reload: func() error { reloads++; return nil }})
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Origin", "http://example.org", http.StatusForbidden},
		{"Origin", "null", http.StatusForbidden},
		{"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"Origin", "http://127.0.0.1:8080", http.StatusOK},
		{"User-Agent", "curl", http.StatusOK},
	} {
		for path, body := range map[string]string{"/commands/reload": "", "/commands/shed": `{"percentage": 0}`} {
			before := reloads
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080"+path, strings.NewReader(body))
			r.Header.Set("Authorization", root)
			r.RemoteAddr = "127.0.0.1:4711"
			r.Header.Set(c.header, c.value)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || c.status != http.StatusOK && reloads != before {
				t.Errorf("%s: %s: %s: status %d, %s", path, c.header, c.value, w.Code, w.Body)
			}
		}
	}
	if reloads != 3 {
		t.Errorf("%d reloads", reloads)
	}
	for mode, status := range map[string]int{"no-cors": http.StatusForbidden, "navigate": http.StatusOK} { // navigate: a link to an answer
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8080/commands/ruok", http.NoBody)
		r.Header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {mode}, "Sec-Fetch-Dest": {"document"}}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != status || w.Header().Get("X-Frame-Options") != "DENY" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: status %d, %v", mode, w.Code, w.Header())
		}
	}
}

// A snapshot that fails for lack of room does not count for the interval: the next one may be made
// at once.
func TestSnapshot_FailedDoesNotCount(t *testing.T) {
	s := start(t, server.Config{})
	h := admin.New(s, admin.Options{Snapshot: true})
	temporary := func(dir string) { // where it is made without a data directory
		t.Setenv("TMPDIR", dir)
		t.Setenv("TMP", dir)
	}
	snapshot := func(what string, status int) {
		t.Helper()
		if w := do(t, h, http.MethodGet, "/commands/snapshot", &root, ""); w.Code != status {
			t.Errorf("%s: %d %.200s", what, w.Code, w.Body)
		}
	}
	temporary(filepath.Join(t.TempDir(), "missing"))
	snapshot("without a place for it", http.StatusInternalServerError)
	snapshot("again", http.StatusInternalServerError)
	temporary(t.TempDir())
	// Nor does one that was cut off.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/commands/snapshot", nil)
	r.Header["Authorization"] = []string{root}
	cut := &cutOff{httptest.NewRecorder()}
	if h.ServeHTTP(cut, r); cut.Code != http.StatusOK || cut.Body.Len() > 0 {
		t.Errorf("cut off: %d, %d bytes", cut.Code, cut.Body.Len())
	}
	snapshot("with a place", http.StatusOK)
	snapshot("at once after that", http.StatusTooManyRequests)
}

// cutOff is a client that leaves after the header.
type cutOff struct{ *httptest.ResponseRecorder }

func (cutOff) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The stream is a complete checkpoint file of the announced length, also over a network.
func TestSnapshot(t *testing.T) {
	s := start(t, server.Config{Dir: t.TempDir()})
	use(t, s)
	web := httptest.NewServer(admin.New(s, admin.Options{Snapshot: true, Interval: -1}))
	defer web.Close()
	for range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/commands/snapshot", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", root)
		answer, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if size := answer.Header.Get("snapshot_size"); size != fmt.Sprint(len(b)) || answer.ContentLength != int64(len(b)) || len(b) < 4096 {
			t.Errorf("%d bytes, snapshot_size %s, Content-Length %d", len(b), size, answer.ContentLength)
		}
		if zxid := answer.Header.Get("last_zxid"); zxid != fmt.Sprintf("0x%x", s.Status().Zxid) {
			t.Errorf("zxid %s, the server is at 0x%x", zxid, s.Status().Zxid)
		}
		// A member with this as its checkpoint lacks only the log.
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "checkpoint.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		again := newServer(t, server.Config{Dir: dir})
		if err := again.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the log") {
			t.Errorf("a server with it: %v", err)
		}
	}
	_, answer := ask(t, s, "last_snapshot")
	if answer["zxid"] != "0" {
		t.Errorf("%v", answer)
	}
}

// The interval between two snapshots applies to all callers, and a refusal does not count.
func TestSnapshot_Limited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admin.New(start(t, server.Config{InProcess: true}), admin.Options{Snapshot: true})
		for _, step := range []struct {
			passes time.Duration
			status int
			retry  string
		}{{0, 200, ""}, {0, 429, "300"}, {4 * time.Minute, 429, "60"}, {time.Minute, 200, ""}, {1500 * time.Millisecond, 429, "299"}} {
			time.Sleep(step.passes) // in the bubble
			w := do(t, h, http.MethodGet, "/commands/snapshot?streaming=false", &root, "")
			if w.Code != step.status || w.Header().Get("Retry-After") != step.retry {
				t.Errorf("after %v: status %d, want %d; %v", step.passes, w.Code, step.status, w.Header())
			}
			if w := do(t, h, http.MethodGet, "/commands/snapshot", nil, ""); w.Code != 401 {
				t.Errorf("without a name: %d", w.Code)
			}
		}
	})
}

func TestRestore_Refused(t *testing.T) {
	h := admin.New(start(t, server.Config{}), admin.Options{Snapshot: true, Shed: true})
	w := do(t, h, http.MethodPost, "/commands/restore", &root, "x")
	if w.Code != 503 || !strings.Contains(w.Body.String(), "gozkd restore") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// Texts and keys are those of ZooKeeper's tests of the command.
func TestShed(t *testing.T) {
	s := start(t, server.Config{})
	for range 2 {
		connect(t, s) // without watches, which go-zookeeper sets again with a data race when it is cut
	}
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{"", 400, "Request body is required"},
		{"{}", 400, "Missing required parameter: percentage"},
		{`{"other": 25}`, 400, "Missing required parameter: percentage"},
		{`{"percentage": null}`, 400, "Missing required parameter: percentage"},
		{`{"percentage": }`, 400, "Invalid JSON or failed to read request body"},
		{`{"percentage": "25"}`, 400, "Invalid JSON or failed to read request body"},
		{`{"percentage": 2.5}`, 400, "Invalid JSON or failed to read request body"},
		{`{"percentage": 1e99}`, 400, "Invalid JSON or failed to read request body"},
		{`{"percentage": 10}` + strings.Repeat(" ", 70_000), 400, "Invalid JSON or failed to read request body"},
		{"[1]", 400, "Invalid JSON or failed to read request body"},
		{`{"percentage": 101}`, 400, "Percentage must be between 0 and 100"},
		{`{"percentage": -1}`, 400, "Percentage must be between 0 and 100"},
		{`{"percentage": 0}`, 200, `"connections_shed": 0,`},
		{`{"percentage": 100}`, 200, `"connections_shed": 2,`},
	} {
		w := do(t, admin.New(s, admin.Options{Shed: true}), http.MethodPost, "/commands/shed_connections", &root, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%.40s: status %d, %s, want %d, %s", c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	if w := do(t, admin.Handler(s), http.MethodPost, "/commands/shed", &root, `{"percentage": 1}`); w.Code != 503 {
		t.Errorf("without the option: status %d", w.Code)
	}
	closeRoot(t, s)
	for who, want := range map[string]int{"digest a:b": 403, "digest root:pw": 403, "x": 401, root: 200} {
		if w := do(t, admin.New(s, admin.Options{Shed: true}), http.MethodPost, "/commands/shed", &who, `{"percentage": 1}`); w.Code != want {
			t.Errorf("%s: status %d, want %d", who, w.Code, want)
		}
	}
}

// The command reload exists if Options.Reload is set, requires POST, and works in every state.
func TestReload(t *testing.T) {
	s := newServer(t, server.Config{})
	var fails error
	calls := 0
	h := admin.New(s, admin.Options{Reload: func() error { calls++; return fails }})
	if w := do(t, h, http.MethodGet, "/commands/reload", &root, ""); w.Code != 405 || calls != 0 {
		t.Errorf("GET: status %d, %d calls", w.Code, calls)
	}
	if w := do(t, h, http.MethodPost, "/commands/reload", nil, ""); w.Code != 401 || calls != 0 {
		t.Errorf("by nobody: status %d, %d calls", w.Code, calls)
	}
	if w := do(t, h, http.MethodPost, "/commands/reload", &root, ""); w.Code != 200 || calls != 1 || !strings.Contains(w.Body.String(), `"error": null`) {
		t.Errorf("status %d, %d calls, %s", w.Code, calls, w.Body)
	}
	fails = errors.New("tickTime needs a restart")
	if w := do(t, h, http.MethodPost, "/commands/reload", &root, ""); w.Code != 200 || !strings.Contains(w.Body.String(), "tickTime needs a restart") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	if with, without := get(t, h, "/commands").Body.String(), get(t, admin.Handler(s), "/commands").Body.String(); !strings.Contains(with, "reload") ||
		strings.Contains(without, "reload") || strings.Contains(with, ">reload<") {
		t.Errorf("listed in\n%s\nand in\n%s", with, without)
	}
}

// Everybody on this machine can run these commands, so they must not show secrets.
func TestConfiguration_Secrets(t *testing.T) {
	h := admin.New(start(t, server.Config{}), admin.Options{
		InitialConfiguration: "tickTime=2000\nssl.keyStore.password=s3cret\nDigestAuthenticationProvider.superDigest = super:s3cret\n" +
			"a.password: s3cret\r\nb.password s3cret\n# c.password=s3cret\nd.password=s3\\\n  s3cret\\\n  s3cret\ne=1\\\n 2\npassword\n# a=b\n" +
			"# f.password=s3cret\\\ng=1\nsuper\\u0044igest=s3cret\nh.pass\\\n word=s3cret\ni\\=j s3cret\n!C:\\\nlast",
		Properties: []server.Setting{{Key: "zookeeper.x", Value: "1"}, {Key: "zookeeper.x", Value: "2"}, {Key: "a", Value: "1"}, {Key: "javax.net.ssl.keyStorePassword", Value: "s3cret"}},
	})
	for command, want := range map[string]string{
		"icfg": `"initial_configuration": "tickTime=2000\nssl.keyStore.password=***\nDigestAuthenticationProvider.superDigest=***\n` +
			`a.password=***\nb.password=***\n# c.password=***\nd.password=***\ne=1\\\n 2\npassword\n# a=b\n` +
			`# f.password=***\ng=1\nsuper=***\nh.pass=***\ni=***\n!C:\\\nlast",`,
		"sysp": "{\n  \"a\": \"1\",\n  \"javax.net.ssl.keyStorePassword\": \"***\",\n  \"zookeeper.x\": \"2\",\n",
	} {
		w := get(t, h, "/commands/"+command)
		if !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s: %s", command, w.Body)
		}
	}
}
