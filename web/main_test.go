package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// site is a server with its pages.
type site struct {
	t   *testing.T
	s   *server.Server
	h   *web.Handler
	url string

	client *http.Client
}

// open starts a server in memory, and serves its pages.
func open(t *testing.T, cfg server.Config, o web.Options) *site {
	t.Helper()
	cfg.InProcess = true
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if o.Rate == 0 {
		o.Rate = 1e6 // for tests in a loop
	}
	h := web.New(s, o)
	srv := listen(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &site{t, s, h, srv.URL, srv.Client()}
}

// listen serves HTTP as gozkd does: the other end of a connection is looked for among all sockets
// of the machine once, and not at each request.
func listen(h *web.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnContext = httplocal.ConnContext
	srv.Start()
	return srv
}

// serve serves the pages of a server that somebody else closes.
func serve(t *testing.T, s *server.Server, h *web.Handler) *site {
	srv := listen(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return &site{t, s, h, srv.URL, srv.Client()}
}

// reply is an answer, read to its end.
type reply struct {
	*http.Response
	body string
}

// ask sends a request. headers are name: value.
func (s *site) ask(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Add(name, value); name == "Host" {
			r.Host = value
		}
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp, string(b)}
}

// want fails the test unless a request is answered with this status, and with this text in the
// body.
func (s *site) want(status int, text, method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := s.ask(method, path, body, headers...)
	if r.StatusCode != status || !strings.Contains(r.body, text) {
		s.t.Errorf("%s %s: status %d, want %d with %q:\n%s", method, path, r.StatusCode, status, text, r.body)
	}
	return r
}

// decode reads the JSON of an answer.
func decode[T any](t *testing.T, r reply) (v T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(r.body)))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

// trail is an audit.Sink that keeps events.
type trail struct {
	mu     sync.Mutex
	events []audit.Event
}

func (l *trail) Record(e *audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, *e)
}

// has reports whether there is an event that f accepts.
func (l *trail) has(f func(e *audit.Event) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.events {
		if f(&l.events[i]) {
			return true
		}
	}
	return false
}
