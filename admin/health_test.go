package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server"
)

// probe requests /livez or /readyz, and compares status and text.
func probe(t *testing.T, what string, h http.Handler, path string, status int, want string) {
	t.Helper()
	w := get(t, h, path)
	if w.Code != status || w.Body.String() != want {
		t.Errorf("%s: %s answers with %d\n%s\nwant %d\n%s", what, path, w.Code, w.Body, status, want)
	}
}

// A standalone server is ready between Start and Close, and alive all the time.
func TestHealth_Standalone(t *testing.T) {
	s := newServer(t, server.Config{})
	var draining error
	h := admin.New(s, admin.Options{NotReady: func() error { return draining }})
	not := func(why string) string {
		return "[-]started failed: " + why + "\n[-]leader failed: " + why + "\n[-]current failed: " + why + "\n[+]program ok\nreadyz check failed\n"
	}
	probe(t, "before the start", h, "/livez", 200, "ok")
	probe(t, "before the start", h, "/readyz", 503, not("not started"))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	probe(t, "started", h, "/readyz", 200, "ok")
	probe(t, "started", h, "/readyz?verbose", 200, "[+]started ok\n[+]leader ok\n[+]current ok\n[+]program ok\nreadyz check passed\n")
	probe(t, "started", h, "/livez?verbose", 200, "[+]running ok\nlivez check passed\n")
	probe(t, "started", admin.Handler(s), "/readyz?verbose", 200, "[+]started ok\n[+]leader ok\n[+]current ok\nreadyz check passed\n")
	draining = errors.New("about to stop")
	probe(t, "draining", h, "/readyz", 503, "[+]started ok\n[+]leader ok\n[+]current ok\n[-]program failed: about to stop\nreadyz check failed\n")
	probe(t, "draining", h, "/livez", 200, "ok")
	draining = nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	probe(t, "after the end", h, "/livez", 200, "ok")
	probe(t, "after the end", h, "/readyz", 503, not("closed"))
}

// A server that refuses growth is ready, and says why it does, and so is one whose archive is
// closed. The paths are for callers on this machine.
func TestHealth_Full(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Config{DataLimit: 1, InProcess: true, ArchiveStats: func() server.ArchiveStats {
			return server.ArchiveStats{Fenced: "closed"}
		}, Certificates: func() server.Certificates { return server.Certificates{Warning: "a.pem ends"} }})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		time.Sleep(3 * time.Second)
		h := admin.Handler(s)
		probe(t, "full", h, "/readyz", 200, "ok")
		const text, paths, end = "data limit reached: 426 B of 1 B; the memory of server 1 decides; growth is refused, because that leaves no room for data; ",
			"largest subtrees: /zookeeper 333 B, / 93 B; ", "raise gozkd.dataLimitKB or the memory of that server"
		probe(t, "full", h, "/readyz?verbose", 200, "[+]started ok\n[+]leader ok\n[+]current ok\n[+]growth warning: "+text+paths+end+"\n[+]archive warning: closed\n[+]certificates warning: a.pem ends\nreadyz check passed\n")
		for from, want := range map[string]string{"127.0.0.1:4711": text + paths + end, "10.0.0.1:4711": text + end} {
			for path, key := range map[string]string{"/readyz": "note", "/commands/monitor": "gozkd_data_status"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				r.RemoteAddr, r.Host = from, "localhost"
				r.Header.Set("Accept", "application/json")
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 || !strings.Contains(w.Body.String(), `"`+key+`": "`+want+`"`) {
					t.Errorf("%s from %s: %d %s", path, from, w.Code, w.Body)
				}
			}
		}
	})
}

func TestHealth_JSON(t *testing.T) {
	s := newServer(t, server.Config{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	r.Header.Set("Accept", "text/html, application/json;q=0.9")
	w := httptest.NewRecorder()
	admin.Handler(s).ServeHTTP(w, r)
	var says struct {
		Status string
		Checks []struct {
			Name   string
			OK     bool
			Reason *string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &says); err != nil || w.Code != 503 || says.Status != "failed" || len(says.Checks) != 3 ||
		says.Checks[0].Name != "started" || says.Checks[0].OK || *says.Checks[0].Reason != "not started" {
		t.Errorf("%d %v %s", w.Code, err, w.Body)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		w := httptest.NewRecorder()
		admin.Handler(s).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if w.Code != 405 {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/livez/", "/readyz/x", "/healthz"} {
		if w := get(t, admin.Handler(s), path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A server whose disk failed is not alive.
func TestHealth_DiskFails(t *testing.T) {
	fails := make(chan struct{})
	cfg := server.Config{Dir: t.TempDir()}
	confighook.Of(&cfg).LogFS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		select {
		case <-fails:
			if op.Kind == vfstest.OpSync {
				return errors.New("no disk")
			}
		default:
		}
		return nil
	})
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // its disk is gone
	c := connect(t, s)
	close(fails)
	_, _ = c.Set("/", nil, -1) // it is not answered
	if err := <-s.Err(); err == nil {
		t.Error("it stopped without a reason")
	}
	for path, want := range map[string]string{"/livez": "[-]running failed: it stopped by itself: ", "/readyz": "[-]started failed: closed: "} {
		if w := get(t, admin.Handler(s), path); w.Code != 503 || !strings.HasPrefix(w.Body.String(), want) || !strings.Contains(w.Body.String(), "no disk") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Each kind of member is ready. Without a quorum none is ready, and all are alive.
func TestHealth_Ensemble(t *testing.T) {
	withThree(t, func(t *testing.T, servers map[string]*server.Server) {
		for role, s := range servers {
			probe(t, role, admin.Handler(s), "/readyz", 200, "ok")
		}
		if err := servers["follower"].Close(); err != nil {
			t.Fatal(err)
		}
		for _, role := range []string{"leader", "observer"} {
			h := admin.Handler(servers[role])
			failed := regexp.MustCompile(`^\[\+\]started ok\n\[-\]leader failed: no leader, which needs a majority of the voters \[.*: start servers \[\d\], or, if .*#quorum-gone-for-good\n`)
			for begin := time.Now(); !failed.MatchString(get(t, h, "/readyz").Body.String()); time.Sleep(10 * time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Fatalf("the %s is ready for a minute without a quorum, or does not say what to do: %s", role, get(t, h, "/readyz").Body)
				}
			}
			probe(t, role, h, "/livez", 200, "ok")
		}
	})
}
