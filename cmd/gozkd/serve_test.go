package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) {
	program.RunMain(main)
	goleak.VerifyTestMain(watchdog.Watch(m))
}

// process is a gozkd process.
type process struct {
	*program.Process
	ports portfile.Ports
}

// launch starts a process and waits for its port file.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{}
	p.Process = program.Launch(t, &p.ports, args...)
	return p
}

func connect(t *testing.T, addresses string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(strings.Split(addresses, ","), 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put creates a znode through one member, and get reads it through another.
func put(t *testing.T, address, path string) {
	t.Helper()
	if _, err := connect(t, address).Create(path, []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, address, path string) {
	t.Helper()
	c := connect(t, address)
	if _, err := c.Sync(path); err != nil {
		t.Fatal(err)
	}
	if data, _, err := c.Get(path); err != nil || string(data) != "x" {
		t.Errorf("%s: %q %v", address, data, err)
	}
}

func TestServe_Alone(t *testing.T) {
	p := launch(t, "serve", "--memory", "--client-port", "0")
	if want := `{"client":"` + p.ports.Client + "\"}\n"; string(p.PortFile) != want {
		t.Errorf("port file %q, want %q", p.PortFile, want)
	}
	put(t, p.ports.Client, "/a")
	get(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// At SIGQUIT a server shows its goroutines and serves on, as Java shows its threads.
func TestServe_Quit(t *testing.T) {
	p := launch(t, "serve", "--memory", "--client-port", "0")
	p.Signal(syscall.SIGQUIT)
	await(t, "the stacks of the goroutines", func() error {
		if !strings.Contains(p.Stderr.String(), ".serve(") {
			return errors.New(p.Stderr.String())
		}
		return nil
	})
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// A server outlives the reader of its log, such as logger in `gozkd 2>&1 | logger`.
func TestServe_LogUnread(t *testing.T) {
	var ports portfile.Ports
	p := program.LaunchUnread(t, &ports, "serve", "--memory", "--client-port", "0")
	put(t, ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// An ensemble in memory serves, and can be backed up: its log and refusals name the file with the
// token for administrators.
func TestServe_Ensemble(t *testing.T) {
	p := launch(t, "serve", "--memory", "--client-port", "0", "--ensemble", "3", "-o", "tickTime=200", "-o", "4lw.commands.whitelist=conf", "-o", "admin.serverPort=0")
	var all []string
	for i, m := range p.ports.Members {
		if m.ID != i+1 || !strings.HasPrefix(m.Client, "127.0.0.1:") {
			t.Errorf("%+v", m)
		}
		all = append(all, m.Client)
	}
	if len(all) != 3 || p.ports.Client != strings.Join(all, ",") || bytes.Count(p.PortFile, []byte("\n")) != 1 {
		t.Fatalf("port file %s", p.PortFile)
	}
	put(t, all[0], "/a")
	for _, address := range all {
		get(t, address, "/a")
		if conf := word(t, address, "conf"); !strings.Contains(conf, "tickTime=200\n") || !strings.Contains(conf, "maxSessionTimeout=3600000\n") {
			t.Errorf("a member's configuration:\n%s", conf)
		}
		if answer := word(t, address, "ruok"); strings.Contains(answer, "imok") {
			t.Errorf("ruok: %s", answer)
		}
	}
	_, admin, _ := strings.Cut(p.ports.Admin, ",")
	member, _, _ := strings.Cut(admin, ",")
	status, refusal := fetch(t, member+"/snapshot")
	_, token, _ := strings.Cut(refusal, "on this machine, Authorization: Bearer with the content of ")
	token, _, _ = strings.Cut(token, `"`)
	if status != http.StatusUnauthorized || !strings.Contains(p.Stderr.String(), "auth-file="+token+"\n") {
		t.Fatalf("%d %s, and the log says\n%s", status, refusal, &p.Stderr)
	}
	must(t, "backup", "--from", member, "--auth-file", token, filepath.Join(t.TempDir(), "zk.backup"))
	if status := p.Stop(os.Interrupt); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Servers in memory that are killed leave one file, the token, which the next servers of the same
// user have, too, and nobody else can read.
func TestServe_MemoryIsKilled(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	token, file := "", ""
	for range 3 {
		temporary := t.TempDir()
		t.Setenv("TMPDIR", temporary)
		p := launch(t, "serve", "--memory", "--client-port", "0", "--ensemble", "3", "-o", "tickTime=200", "-o", "admin.serverPort=0")
		_, text, _ := strings.Cut(p.Stderr.String(), "auth-file=")
		file, _, _ = strings.Cut(text, "\n")
		now, shared, err := admintoken.Read(file)
		if err != nil || shared != "" || token != "" && now != token {
			t.Fatalf("%s holds %s, before it was %s: %s %v", file, now, token, shared, err)
		}
		if token = now; !strings.HasPrefix(file, cache) {
			t.Errorf("the token is in %s", file)
		}
		must(t, "admin", "--url", strings.Split(p.ports.Admin, ",")[1], "--auth-file", file, "stat_reset")
		p.Stop(os.Kill)
		if left, err := filepath.Glob(filepath.Join(temporary, "gozkd*")); err != nil || len(left) > 0 {
			t.Errorf("left are %q, %v", left, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// Data and ports are where they were asked for, and come back.
func TestServe_EnsembleOnDisk(t *testing.T) {
	dir := t.TempDir()
	first := reserveRange(t, 3)
	for _, path := range []string{"/a", "/b"} {
		p := launch(t, "--data-dir", dir, "--client-port", strconv.Itoa(first), "--ensemble", "3")
		for i, m := range p.ports.Members {
			if want := "127.0.0.1:" + strconv.Itoa(first+i); m.Client != want {
				t.Errorf("member %d at %s, want %s", m.ID, m.Client, want)
			}
			if _, err := os.Stat(filepath.Join(dir, strconv.Itoa(m.ID), "checkpoint.db")); err != nil {
				t.Error(err)
			}
		}
		put(t, p.ports.Members[0].Client, path)
		get(t, p.ports.Members[2].Client, "/a")
		if status := p.Stop(syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
	var stdout, stderr strings.Builder
	status := run("gozkd", []string{"--data-dir", dir, "--client-port", "0", "--ensemble", "5"}, outside(&stdout, &stderr))
	if status != 1 || !strings.Contains(stderr.String(), "has the data of 3 members, and 5 want to use it") {
		t.Errorf("five members with the data of three: %d %s", status, &stderr)
	}
}

// What can't be done ends at once, with one line that says what and why.
func TestServe_EnsembleCannot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		args   string
		status int
		text   string
	}{
		{"--client-port " + port, 1, "address already in use; stop what listens there, or choose another port: --client-port, "},
		{"--client-port 1 --client-address *", 2, "allowed: a host name or an IP address, without a port\n"},
		{"--client-port 1 --client-address " + strings.Repeat("x", 64), 1, "no such host; choose another address, 0.0.0.0 for all: --client-port, clientPort, clientPortAddress, the server lines\n"},
		{"--ensemble 3 --client-port " + port, 1, "member 1: client port: listen tcp 127.0.0.1:" + port + ": bind: address already in use; stop what listens there, or "},
		{"--ensemble 3 --client-port 0 --faults-port 0", 2, "--faults-port: is a flag of gozkd-testkit"},
		{"--ensemble 3 --client-port 0 --port-file no/such/dir", 1, "port file: "},
		{"--ensemble 3 --id 2", 2, "--ensemble: is 3, but myid is 2"},
		{"--ensemble x", 2, `--ensemble: is "x"; allowed: a whole number from 1 to 9`},
	} {
		var stdout, stderr strings.Builder
		status := run("gozkd", append(strings.Fields(c.args), "--memory", "--log-level", "off"), outside(&stdout, &stderr))
		if status != c.status || strings.Count(stderr.String(), "gozkd: ") != 1 || !strings.Contains(stderr.String(), c.text) {
			t.Errorf("%s: %d %q, want %d and %q", c.args, status, &stderr, c.status, c.text)
		}
	}
}

// word asks a four-letter word.
func word(t *testing.T, address, w string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(watchdog.Context(t, 10*time.Second), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(w)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// reserveRange returns the first of n consecutive ports for child processes, at most 49, whose
// number ends in 1. They are reserved until the test ends, where the system can do that, and below
// the range of outgoing connections. The port before them is listened at, so that no other process
// that runs these tests takes the same ones.
func reserveRange(t *testing.T, n int) int {
	t.Helper()
	const ranges, each = 240, 50
next:
	for i := range ranges {
		first := 20000 + (os.Getpid()+i)%ranges*each
		lock, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(first))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = lock.Close() })
		for port := first + 1; port <= first+n; port++ {
			p, err := tcpport.Reserve("127.0.0.1:" + strconv.Itoa(port))
			if err != nil {
				continue next
			}
			t.Cleanup(p.Release)
			p.Yield()
		}
		return first + 1
	}
	t.Fatal("no free ports")
	return 0
}

// A program removes its own port file, and not the one of a program that started later.
func TestPortFile_Successor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ports")
	first := portfile.Ports{Client: "127.0.0.1:1", Members: []portfile.Member{{ID: 1, Client: "127.0.0.1:1"}}, Admin: "http://127.0.0.1:2/?a&b"}
	second := first
	second.Admin = "http://127.0.0.1:3/"
	for _, p := range []portfile.Ports{first, second} {
		if err := p.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	first.Remove(path)
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), second.Admin) {
		t.Fatalf("%q, %v after the first program has ended, want the file of the second", text, err)
	}
	second.Remove(path)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%v after the second program has ended, want no file", err)
	}
	second.Remove(path) // no file: nothing happens
	portfile.Ports{}.Remove("")
}
