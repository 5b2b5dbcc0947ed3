package faultsapi_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// world is a cluster with its HTTP server.
type world struct {
	t       *testing.T
	cluster *cluster.Cluster
	srv     *faultsapi.Server
}

func start(t *testing.T, members int) *world {
	t.Helper()
	l, err := cluster.Start(t.Context(), cluster.Config{Members: members})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := faultsapi.Start(l, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{t, l, s}
}

// ask sends a request, which change may alter, and returns status and body.
func (w *world) ask(method, path, body string, change ...func(*http.Request)) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.srv.URL()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// must is ask for a request that must succeed. It decodes the reply into v unless v is nil.
func (w *world) must(method, path, body string, v any) {
	w.t.Helper()
	status, text := w.ask(method, path, body)
	if status != http.StatusOK {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		w.t.Fatalf("%s %s: %q: %v", method, path, text, err)
	}
}

// connect returns a client with a session at one member, the only one that it knows.
func (w *world) connect(id int) *zk.Conn {
	w.t.Helper()
	m, err := w.cluster.Member(id)
	if err != nil {
		w.t.Fatal(err)
	}
	c, events, err := zk.Connect([]string{m.Address()}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			return c
		}
	}
	w.t.Fatal("the client was closed")
	return nil
}

// eventually waits until f is true.
func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(w.t, 20*time.Second)
	for !f() {
		select {
		case <-poll.C:
		case <-late:
			w.t.Fatalf("never came true: %s", what)
		}
	}
}
