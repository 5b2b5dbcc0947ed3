package server_test

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

// Changed fields apply to clients that come later, and fields that need a restart are named.
func TestReload(t *testing.T) {
	cfg := server.Config{Listen: "127.0.0.1:0", Words: []string{"ruok"}, HandshakeTimeout: time.Hour}
	s := start(t, cfg)
	address := s.ConnectString()
	if got := ask(t, address, "conf"); !strings.Contains(got, "not in the whitelist") {
		t.Fatalf("conf before it is allowed: %q", got)
	}
	cfg.Words, cfg.MaxClientConns, cfg.MinSessionTimeout, cfg.MaxSessionTimeout = []string{"conf"}, 3, time.Second, time.Minute
	restart, err := s.Reload(cfg)
	if err != nil || len(restart) > 0 {
		t.Fatalf("%v %v", restart, err)
	}
	got := ask(t, address, "conf")
	for _, line := range []string{"maxClientCnxns=3\n", "minSessionTimeout=1000\n", "maxSessionTimeout=60000\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	if got := ask(t, address, "ruok"); !strings.Contains(got, "not in the whitelist") {
		t.Errorf("ruok is no longer allowed, and answers %q", got)
	}

	refused := make(chan error, 8)
	var conns []net.Conn
	var readers sync.WaitGroup
	for range cap(refused) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		readers.Go(func() { // ends when the connection is closed, awaited below
			_, err := c.Read(make([]byte, 1))
			refused <- err
		})
	}
	late := watchdog.After(t, 9*time.Second)
	for range 5 { // three stay open: reading them would block until the handshake times out
		select {
		case err := <-refused:
			if err == nil {
				t.Error("a refused connection sent something")
			}
		case <-late:
			t.Fatal("more connections than are allowed")
		}
	}
	for _, c := range conns {
		_ = c.Close() // some are closed already
	}
	readers.Wait()

	bad := cfg
	bad.MinSessionTimeout, bad.Words = time.Hour, nil
	if _, err := s.Reload(bad); err == nil || !strings.Contains(err.Error(), "MinSessionTimeout (default: 2 ticks) is 1h0m0s, more than") {
		t.Errorf("a bad configuration: %v", err)
	}
	cfg.Tick, cfg.Dir, cfg.Words = time.Minute, "elsewhere", []string{"ruok"}
	cfg.MinSessionTimeout, cfg.MaxSessionTimeout = time.Second, time.Minute
	restart, err = s.Reload(cfg)
	if err != nil || !slices.Equal(restart, []string{"Dir", "Tick"}) {
		t.Errorf("what needs a restart: %v %v", restart, err)
	}
}

// Reload may be called at any time, also while clients are served, and concurrently.
func TestReload_WhileServing(t *testing.T) {
	cfg := server.Config{Listen: "127.0.0.1:0", Words: []string{"*"}, MaxClientConns: -1}
	s := start(t, cfg)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { // awaited below
			for j := range 50 {
				next := cfg
				next.MaxConns, next.OutstandingLimit, next.EnforceQuota = 1000+i*100+j, 10+j, j%2 == 0
				if restart, err := s.Reload(next); err != nil || len(restart) > 0 {
					t.Error(restart, err)
				}
				if ask(t, s.ConnectString(), "ruok") != "imok" {
					t.Error("not ok")
				}
			}
		})
	}
	all.Wait()
}
