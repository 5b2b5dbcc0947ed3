package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// No archiver runs with --ensemble. So the members drop their log after a checkpoint, although an
// archive is configured.
func TestEnsemble_KeepsNoLogForAnArchive(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	args := []string{"--data-dir", dir, "--client-port", "0", "-o", "snapCount=10", "-o", "gozkd.archive.url=file://" + place}
	_, c, err := config.Load(args, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := ensembleConfig(c, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = "127.0.0.1:0"
	server, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, late := connect(t, server.Addr().String()), watchdog.Context(t, time.Minute)
	first := server.Backups().LogPosition().Applied
	for i := 0; ; i++ {
		if _, err := conn.Create(fmt.Sprintf("/%d", i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Backups().ReplicatedLog(first, 1); errors.Is(err, consensus.ErrCompacted) {
			return
		} else if err != nil || late.Err() != nil {
			t.Fatalf("after %d writes entry %d is still in the log: %v", i+1, first, err)
		}
	}
}

// All members end when one cannot start, although the others wait for their majority.
func TestEnsemble_MembersThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	vfstest.DamagedCheckpoints(t, dir, "2", "3")
	_, c, err := config.Load([]string{"--data-dir", dir, "--client-port", "0"}, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = serveEnsemble(watchdog.Context(t, time.Minute), &config.Invocation{Ensemble: 3}, c, nil, hclog.NewNullLogger())
	if err == nil || !strings.Contains(err.Error(), "corrupt checkpoint") || !strings.HasPrefix(err.Error(), "member ") {
		t.Errorf("%v, want the name of a member that cannot start, and why", err)
	}
}

// One command finds why a session ended, whichever member ended it: the others alone do not know.
func TestEnsemble_Why(t *testing.T) {
	p := launch(t, "serve", "--memory", "--client-port", "0", "--ensemble", "3", "-o", "admin.serverPort=0",
		"-o", "DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("digest super:test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admins := strings.Split(p.ports.Admin, ",")
	if len(admins) != 3 {
		t.Fatalf("port file %s", p.PortFile)
	}
	var clients []*client.Client
	for _, m := range p.ports.Members {
		c, err := client.Connect(t.Context(), client.Config{Servers: []string{m.Client}, SessionTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the servers are stopped
		clients = append(clients, c)
	}
	for i, member := range p.ports.Members {
		path := "/e" + strconv.Itoa(i)
		c, err := client.Connect(t.Context(), client.Config{Servers: []string{member.Client}, SessionTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // its session has ended
		if _, _, err := c.Create(t.Context(), path, nil, client.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		session, decider := proto.SessionID(c.Session().ID).String(), (i+1)%3
		if status, _, errs := adminCommand(t, "--url", admins[decider], "--auth-file", secret, "expire_session", "id="+session); status != 0 {
			t.Fatal(errs)
		}
		for _, c := range clients { // the members have applied the end
			if _, err := c.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		status, out, errs := why(t, "--url", p.ports.Admin, path)
		want := fmt.Sprintf("an administrator, or the embedding program, ended it at server %d\n  deleted %s\n", decider+1, path)
		if status != 0 || !strings.HasPrefix(out, "session "+session) || !strings.Contains(out, want) || errs != "" {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
	}
}

// A member whose admin port is taken serves without one: the list of endpoints, which gozkd why
// takes, has those of the others.
func TestEnsemble_AdminPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.2:0") // not the address whose free ports the members take for clients
	if err != nil {
		t.Skip("this system has one loopback address: ", err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	p := launch(t, "serve", "--memory", "--client-port", "0", "--ensemble", "3",
		"-o", "admin.serverAddress=127.0.0.2", "-o", "admin.serverPort="+port)
	if slices.Contains(strings.Split(p.ports.Admin, ","), "") && p.ports.Admin != "" { // all may be taken
		t.Errorf("admin endpoints %q", p.ports.Admin)
	}
}

// An admin endpoint does not take the port of a member, but is not served: here that of member 1,
// at the port of member 3.
func TestEnsemble_AdminPortOfAMember(t *testing.T) {
	const host = "127.0.0.3" // where no other program listens
	free, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Skip("this system has one loopback address: ", err)
	}
	_ = free.Close()
	first := reserveRange(t, 5) // of another address, but no program gets such a number by chance
	p := launch(t, "serve", "--memory", "--client-port", strconv.Itoa(first), "--client-address", host, "--ensemble", "3",
		"-o", "admin.serverAddress="+host, "-o", "admin.serverPort="+strconv.Itoa(first+2))
	if want := fmt.Sprintf("http://%s:%d/commands,http://%[1]s:%[3]d/commands", host, first+3, first+4); p.ports.Admin != want {
		t.Errorf("admin endpoints %q, want %q", p.ports.Admin, want)
	}
}

// A stopped ensemble ends the sessions of a member's pages while it has a majority.
func TestEnsemble_StopsWithOpenPages(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, "serve", "--data-dir", dir, "--client-port", "0", "--ensemble", "3", "-o", "admin.serverPort=0", "-o", "gozkd.web=read", "-o", "forceSync=no")
	page := strings.TrimSuffix(strings.Split(p.ports.Admin, ",")[1], "/commands")
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"/znodes/v2/?watch=recursive", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q) // of member 2, at once: all members serve
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		t.Fatal(r.Status)
	}
	p.Signal(syscall.SIGHUP) // reloads other servers, and does not end this one
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d", status)
	}
	var left []string // the longest log has all ends that a majority has agreed to
	for _, id := range []string{"1", "2", "3"} {
		left = append(left, must(t, "inspect", "--sessions", filepath.Join(dir, id)))
	}
	if !slices.Contains(left, "") {
		t.Errorf("the members have the sessions %q", left)
	}
}
