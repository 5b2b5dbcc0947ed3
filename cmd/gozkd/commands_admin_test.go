package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

// adminCommand runs gozkd admin.
func adminCommand(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = run("gozkd", append([]string{"admin"}, args...), outside(&out, &errs))
	return status, out.String(), errs.String()
}

// adminEndpoints starts three members and returns the URLs of their admin endpoints by id, and a
// file with the superuser's password. With a large syncLimit the members serve although this
// process stood still.
func adminEndpoints(t *testing.T, syncLimit int) (c *cluster.Cluster, urls map[int]string, secret string) {
	t.Helper()
	cfg := server.Config{SyncLimit: syncLimit, SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}
	c, err := cluster.Start(t.Context(), cluster.Config{Members: 3, InMemory: true, Server: cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	urls = make(map[int]string)
	for _, m := range c.Members() {
		web := httptest.NewServer(admin.New(m.Server(), admin.Options{Snapshot: true}))
		t.Cleanup(web.Close)
		urls[m.ID()] = web.URL
	}
	secret = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("digest super:test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return c, urls, secret
}

// An operator ends a session and hands over leadership. Without the right nobody does.
func TestAdmin_Ensemble(t *testing.T) {
	c, urls, secret := adminEndpoints(t, 100)
	client, _, err := zk.Connect(strings.Split(c.ConnectString(), ","), 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithDialer(func(_, address string, _ time.Duration) (net.Conn, error) {
		return c.Dial(context.WithoutCancel(t.Context()), address)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("id=0x%x", client.SessionID())
	for _, q := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--server", urls[2], "expire_session", id}, 1, "use --auth-file to name the superuser or a token"},
		{[]string{"--server", urls[2], "--auth-file", secret, "expire_session", "id=0x1"}, 1, "404 Not Found: there is no session 0x1"},
		{[]string{"--server", urls[2], "--auth-file", secret, "expire_session", id}, 0, id[3:]},
		{[]string{"--server", urls[2], "--auth-file", secret, "expire_session", id}, 1, "there is no session"},
		{[]string{"--server", urls[1], "ruok"}, 0, `"command": "ruok"`},
		{[]string{"--server", urls[1], "rouk"}, 1, "Unknown command: rouk"},
		{[]string{"--url", "http://127.0.0.1:1", "ruok"}, 1, "; use --url to name the admin endpoint of a server that runs"},
	} {
		if status, stdout, stderr := adminCommand(t, q.args...); status != q.status || !strings.Contains(stdout+stderr, q.says) || (status == 0) != (stderr == "") {
			t.Errorf("%q: status %d\n%s%s\nwant %d, %s", q.args, status, stdout, stderr, q.status, q.says)
		}
	}
	// The session ended although its client is there: the client has the next session by now, or
	// soon.
	if exists, _, err := client.Exists("/e"); exists || err != nil && !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("the ephemeral of the ended session exists: %v, %v", exists, err)
	}

	// On a busy machine the voter may be out of step, or another election may come first.
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late, refused, led := watchdog.Context(t, time.Minute), false, false; !refused || !led; <-look.C {
		leader, err := c.Leader(t.Context())
		if err != nil || late.Err() != nil {
			t.Fatalf("a follower refused: %v; another member led: %v; %v", refused, led, err)
		}
		to := leader.ID()%3 + 1
		_, _, stderr := adminCommand(t, "--server", urls[to], "--auth-file", secret, "transfer_leadership")
		refused = refused || strings.Contains(stderr, fmt.Sprintf("this server is not the leader: ask server %[1]d (m%[1]d)", leader.ID()))
		status, stdout, _ := adminCommand(t, "--server", urls[leader.ID()], "--auth-file", secret, "transfer_leadership", fmt.Sprintf("to=%d", to))
		led = led || status == 0 && strings.Contains(stdout, fmt.Sprintf(`"leader_id": %d`, to))
	}
}

// Wrong command lines, and servers that do not answer.
func TestAdmin_Refuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	off := filepath.Join(dir, "off.cfg")
	if err := os.WriteFile(off, []byte("dataDir=d\nadmin.serverPort=-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 2, "name the command to run"},
		{"snapshot", 2, "gozkd backup"},
		{"expire_session 0x1", 2, `"0x1" is not NAME=VALUE`},
		{"--server h:8080 ruok", 2, "http://HOST:8080"},
		{"--server http://127.0.0.1:1 --tls ruok", 2, "https://HOST:8080"},
		{"--server http://127.0.0.1:1 ruok", 1, "http://127.0.0.1:1/commands/ruok: "},
		{"--server http://127.0.0.1:1/zk ruok", 1, "http://127.0.0.1:1/zk/ruok: "},
		{"--config off.cfg ruok", 1, "name one with --url"},
		{"--config none.cfg ruok", 1, "none.cfg"},
		{"--auth-file none --server http://127.0.0.1:1 ruok", 1, "none"},
	} {
		if status, stdout, stderr := adminCommand(t, strings.Fields(q.args)...); status != q.status || stdout != "" || !strings.Contains(stderr, q.says) {
			t.Errorf("%s: status %d\n%s%s\nwant %d, %s", q.args, status, stdout, stderr, q.status, q.says)
		}
	}
}

// On the server's machine `gozkd admin` finds the endpoint and the token of the server in its
// zoo.cfg.
func TestAdmin_OfThisMachine(t *testing.T) {
	dir := t.TempDir()
	zooCfg := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=0\nadmin.serverPort=%d\n", filepath.ToSlash(filepath.Join(dir, "data")), reserveRange(t, 1))
	if err := os.WriteFile(zooCfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, zooCfg)
	c := connect(t, p.ports.Client)
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("0x%x", c.SessionID())
	if status, stdout, stderr := adminCommand(t, "--config", zooCfg, "expire_session", "id="+id); status != 0 || !strings.Contains(stdout, id) {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if exists, _, err := connect(t, p.ports.Client).Exists("/e"); exists || err != nil {
		t.Errorf("the ephemeral of the ended session: %v, %v", exists, err)
	}
}

// A backup at a member that loses the quorum fails and names the way on, as one that is begun
// later.
func TestBackup_WithoutAQuorum(t *testing.T) {
	c, urls, secret := adminEndpoints(t, 0)
	for _, id := range []int{2, 3} {
		m, err := c.Member(id)
		if err == nil {
			err = m.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	for range 2 {
		var out strings.Builder
		status := run("gozkd", []string{"backup", "--from", urls[1], "--auth-file", secret, file}, outside(&out, &out))
		if status != 1 || !regexp.MustCompile(`is not currently serving requests: no (leader, which needs a majority of the voters \[1 2 3\]|contact with the leader, server [23],).*; ask another member`).MatchString(out.String()) {
			t.Errorf("status %d: %s", status, &out)
		}
	}
}
