package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// A server becomes a member when there should be as many servers, and leaves when it is stopped
// because there should be fewer, but not when it is restarted or all are stopped.
func TestScaling(t *testing.T) {
	var wanted atomic.Int32
	kubernetes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"kind":"Scale","spec":{"replicas":%d}}`, wanted.Load())
	}))
	defer kubernetes.Close()
	dir, peers := t.TempDir(), map[string]int{"1": unusedPort(t), "2": unusedPort(t), "3": unusedPort(t)}
	secret := testca.WriteFile(t, filepath.Join(dir, "secret"), []byte(strings.Repeat("secret", 5)))
	serve := func(id string) *process {
		return launch(t, "serve", "--id", id, "--data-dir", filepath.Join(dir, id), "--client-port", "0", "-o", "tickTime=200", "-o", "syncLimit=100", "-o", "standaloneEnabled=false",
			"-o", "reconfigEnabled=true", "-o", "gozkd.peer.secretFile="+secret, "-o", "gozkd.scale.url="+kubernetes.URL,
			"-o", fmt.Sprintf("server.1=127.0.0.1:%d", peers["1"]), "-o", fmt.Sprintf("server.%s=127.0.0.1:%d", id, peers[id]))
	}
	c := connect(t, serve("1").ports.Client)
	// A server that stops may have led, and an election may break the client's connection.
	isMember := func(id string) (is bool) {
		await(t, "the members, of server 1", func() error {
			_, errSync := c.Sync("/")
			data, _, err := c.Get("/zookeeper/config")
			is = strings.Contains(string(data), "server."+id+"=")
			return errors.Join(errSync, err)
		})
		return is
	}
	joins := func(id string) *process {
		p := serve(id)
		late := watchdog.After(t, time.Minute)
		for !isMember(id) {
			select {
			case <-late:
				t.Fatal("server " + id + " did not become a member")
			case <-time.After(20 * time.Millisecond):
			}
		}
		return p
	}
	wanted.Store(2)
	joins("2")
	for _, step := range []struct {
		starts, stops int32 // how many servers there should be when server 3 does
		stays         bool
	}{{3, 3, true}, {3, 0, true}, {3, 2, false}, {4, 2, false}} {
		wanted.Store(step.starts)
		p := joins("3")
		wanted.Store(step.stops)
		if status := p.Stop(syscall.SIGTERM); status != 0 || isMember("3") != step.stays {
			t.Fatalf("%+v: exit status %d, a member %v\n%s", step, status, isMember("3"), p.Stderr.String())
		}
	}
}

func TestScaling_Wanted(t *testing.T) {
	answer := ""
	kubernetes := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if answer == "" || req.Header.Get("Authorization") != "Bearer token of a pod" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	defer kubernetes.Close()
	dir := t.TempDir()
	testca.WriteFile(t, filepath.Join(dir, "token"), []byte("token of a pod\n"))
	s := &scaling{url: kubernetes.URL + "/scale", secrets: dir}
	if _, err := s.wanted(t.Context()); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("without an authority: %v", err)
	}
	testca.WriteFile(t, filepath.Join(dir, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kubernetes.Certificate().Raw}))
	for given, want := range map[string]int{`{"spec":{"replicas":5},"status":{"replicas":3}}`: 5, `{"spec":{}}`: 0, "": -1, "not JSON": -1} {
		answer = given
		if got, err := s.wanted(t.Context()); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d %v, want %d", given, got, err, want)
		}
	}
}
