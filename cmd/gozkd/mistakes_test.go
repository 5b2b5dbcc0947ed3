package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// TestMistakes types what people mistype: the kind of port, of address, of file. The error names
// what was typed, why that is wrong, and what to type instead. The log of a server never blames a
// client for a look that a tool took at its port.
func TestMistakes(t *testing.T) {
	const prometheus = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
	p := launch(t, "serve", "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", prometheus,
		"-o", "metricsProvider.httpPort=0", "-o", "metricsProvider.httpHost=127.0.0.1")
	dir := t.TempDir()
	files := testca.New(t, "root").Issue(t, testca.Spec{CN: "server", Hosts: []string{"127.0.0.1"}}).Files(t)
	members := fmt.Sprintf("127.0.0.1:%d", unusedPort(t))
	secure := fmt.Sprintf("127.0.0.1:%d", unusedPort(t))
	member := launch(t, "--data-dir", filepath.Join(dir, "data"), "--id", "1", "--client-port", "0", "-o", "standaloneEnabled=false", "-o", "server.1="+members,
		"-o", "secureClientPort="+secure[len("127.0.0.1:"):], "-o", "ssl.keyStore.location="+files.Key, "-o", "ssl.clientAuth=none",
		"-o", "admin.serverPort=0", "-o", "admin.forceHttps=true", "-o", "ssl.quorum.keyStore.location="+files.Key)
	t.Chdir(dir)
	text := filepath.Join(dir, "passwd")
	testca.WriteFile(t, text, []byte(strings.Repeat("root:x:0:0:root:/root:/bin/sh\n", 300)))
	hostPort := regexp.MustCompile(`[\d.]+:\d+`)
	clients, admin, https := p.ports.Client, hostPort.FindString(p.ports.Admin), hostPort.FindString(member.ports.Admin)
	metrics := hostPort.FindString(p.ports.Metrics)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	silent := l.Addr().String()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		if strings.Contains(r.URL.Path, "snapshot") {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>It works!</title>") // a client that leaves is none of its concern
	}))
	defer foreign.Close()
	banner, closing := answering(t, "220 mail.example.org ESMTP\r\n"), answering(t, "")
	const (
		forClients = "this port is for ZooKeeper's clients: name that of the admin server"
		noAdmin    = ", but not from an admin server: name its port (admin.serverPort, 8080)"
		closes     = "this port closes the connection without an answer: name that of the admin server"
		another    = "this port speaks another protocol: name "
		noFile     = "gozkd backup --from http://HOST:8080 FILE"
		plain      = "want host:port without http://"
		speaksHTTP = "this port speaks HTTP: name the port for ZooKeeper's clients"
		inUse      = "data/LOCK (held by process "
		forMembers = "this port is for the other members: name "
		isSilent   = "no answer within 5s; check the address, that the server's process is not stopped, "
	)
	mistakes := []struct {
		args   string
		status int
		want   []string
	}{
		{"backup --from " + admin + " f", 1, []string{"there is no file " + admin, noFile}},
		{"restore --into d --from " + admin, 1, []string{"there is no file " + admin, noFile}},
		{"inspect " + admin, 1, []string{"there is no file " + admin, noFile}},
		{"backup --from http://" + clients + " f", 1, []string{clients, forClients}},
		{"backup --from https://" + clients + " f", 1, []string{clients, forClients}},
		{"backup --from https://" + admin + " f", 1, []string{admin, "use http://"}},
		{"backup --from passwd f", 1, []string{"passwd", "or the file is no checkpoint", "name another backup"}},
		{"restore --into d --from passwd", 1, []string{"passwd", "or the file is no checkpoint", "name another backup"}},
		{"restore passwd", 2, []string{"write --from passwd"}},
		{"restore --into passwd", 2, []string{"--from is missing: name the state to restore\n"}},
		{"inspect passwd", 1, []string{"passwd", "or the file is no checkpoint", "name another backup"}},
		{"restore --into data --from passwd", 1, []string{inUse}},
		{"init --data-dir data", 1, []string{inUse}},
		{"import --into data passwd", 1, []string{inUse}},
		{"restore file:///d --at 2999-01-01T00:00:00Z --into d", 1, []string{"gozkd restore: --at 2999-01-01T00:00:00Z is in the future: leave it out for the last state\n"}},
		{"check-config data", 1, []string{"data: cannot be read: is a directory: name a file; --data-dir names the directory of the data"}},
		{"check-config data/checkpoint.db", 1, []string{"data/checkpoint.db: cannot be read: is no text in UTF-8; a backup is for gozkd restore"}},
		{"verify passwd", 1, []string{`gozkd verify: "passwd" is neither file:///DIRECTORY nor s3://`}},
		{"cli -server http://" + clients + " ls /", 2, []string{"gozkd cli: connect string", plain}},
		{"cli -server a:1;b:1 ls /", 2, []string{`"a:1;b:1": want commas between servers`}},
		{"admin --url http://" + admin + " ruokk", 1, []string{"Unknown command: ruokk; http://" + admin + "/commands lists the commands"}},
		{"cli -server a//b ls /", 2, []string{`gozkd cli: connect string "a//b": invalid path "//b"`}},
		{"top -once -server https://" + clients, 2, []string{"gozkd top: connect string", "want host:port without https://"}},
		{"status -server http://" + admin, 2, []string{"gozkd status: connect string", plain}},
		{"mirror --from http://a --to b", 2, []string{"gozkd mirror: --from: connect string", plain}},
		{"mirror --from a --to b --to-auth-file nosuch", 2, []string{"gozkd mirror: --to: open nosuch"}},
		{"admin --url http://" + clients + " stat", 1, []string{clients, forClients}},
		{"admin --url https://" + clients + " stat", 1, []string{clients, forClients}},
		{"why --url http://" + clients + " 0x1", 1, []string{clients, forClients}},
		{"cli --tls -server " + clients + " ls /", 1, []string{clients, "leave --tls out"}},
		{"cli -timeout 3s -server " + admin + " ls /", 1, []string{admin, speaksHTTP}},
		{"status -timeout 3s -server " + admin, 1, []string{admin, speaksHTTP}},
		{"ruok -timeout 3s -server " + admin, 1, []string{admin, speaksHTTP}},
		{"ruok --insecure-skip-verify -timeout 3s -server " + https, 1, []string{https, speaksHTTP}},
		{"cli -timeout 3s -server " + members + " ls /", 1, []string{members, forMembers + "the port for ZooKeeper's clients"}},
		{"status -timeout 3s -server " + members, 1, []string{members, forMembers + "the port for"}},
		{"top -once -interval 1s -server " + members, 1, []string{members, forMembers + "the port for"}},
		{"mirror --from " + clients + " --to " + members, 1, []string{"the target: ", members, forMembers + "the port for"}},
		{"mirror --from " + members + " --to " + clients, 1, []string{"the source: ", members, forMembers + "the port for"}},
		{"backup --from http://" + members + " f", 1, []string{members, forMembers + "that of the admin server"}},
		{"admin --url https://" + members + " stat", 1, []string{members, forMembers + "that of the admin server"}},
		{"why --url http://" + members + " 0x1", 1, []string{members, forMembers + "that of the admin server"}},
		{"backup --from http://" + https + " f", 1, []string{https, "Use https://"}},
		{"admin --url http://" + https + " stat", 1, []string{https, "Use https://"}},
		{"cli -timeout 3s -server " + https + " ls /", 1, []string{https, speaksHTTP}},
		{"status -timeout 3s -server " + https, 1, []string{https, speaksHTTP}},
		{"ruok -timeout 3s -server " + secure, 1, []string{secure, "this port speaks TLS: add --tls"}},
		{"status --tls -timeout 3s -server " + admin, 1, []string{admin, speaksHTTP}},
		{"ruok --tls -timeout 3s -server " + members, 1, []string{members, forMembers + "the port for"}},
		{"backup --insecure-skip-verify --from https://" + secure + " f", 1, []string{secure, forClients}},
		{"backup --from http://" + secure + " f", 1, []string{secure, forClients}},
		{"admin --url " + foreign.URL + " ruok", 1, []string{"/commands/ruok: 200 OK" + noAdmin}},
		{"why --url " + foreign.URL + " 0x1", 1, []string{"/commands/peers: 200 OK" + noAdmin}},
		{"backup --from " + foreign.URL + " f", 1, []string{"/commands/snapshot: 404 Not Found" + noAdmin}},
		{"export --zookeeper d --from " + foreign.URL, 1, []string{"/commands/snapshot: 404 Not Found" + noAdmin}},
		{"status -server " + closing, 1, []string{closing, "the connection was closed without an answer; check the address"}},
		{"cli -timeout 3s -server " + closing + " ls /", 1, []string{closing, "it is no ZooKeeper server, has no quorum"}},
		{"admin --url http://" + closing + " ruok", 1, []string{closing, closes}},
		{"backup --from https://" + closing + " f", 1, []string{closing, closes}},
		{"status -timeout 3s -server " + banner, 1, []string{banner, another + "the port for ZooKeeper's clients"}},
		{"cli -timeout 3s -server " + banner + " ls /", 1, []string{banner, another + "the port for ZooKeeper's clients"}},
		{"admin --url http://" + banner + " ruok", 1, []string{banner, another + "that of the admin server"}},
		{"admin --url http://" + metrics + " stat", 1, []string{metrics, "admin.serverPort, 8080), not that of metrics"}},
		{"cli -timeout 6s -waitforconnection -server " + silent + " ls /", 1, []string{silent, isSilent}},
		{"mirror --from " + silent + " --to " + clients, 1, []string{"the source: ", silent, isSilent}},
		{"status -server " + silent, 1, []string{silent, isSilent}},
		{"ruok --tls -server " + silent, 1, []string{silent, isSilent}},
		{"admin --url http://" + silent + " stat", 1, []string{silent, isSilent}},
		{"why --url https://" + silent + " 0x1", 1, []string{silent, isSilent}},
		{"backup --from http://" + silent + " f", 1, []string{silent, isSilent}},
		{"export --zookeeper d --from http://" + silent, 1, []string{silent, isSilent}},
	}
	parallel.Each(len(mistakes), 8, func(i int) error {
		c, soon := &mistakes[i], watchdog.Context(t, 40*time.Second)
		var out strings.Builder
		status := run("gozkd", strings.Fields(c.args), outside(&out, &out))
		first, _, _ := strings.Cut(out.String(), "\n\n")
		if soon.Err() != nil {
			t.Errorf("%s: it took more than 40 s", c.args)
		}
		for _, want := range c.want {
			if status != c.status || !strings.Contains(first+"\n", want) {
				t.Errorf("%s: status %d\n%s\nwant %d, %s", c.args, status, first, c.status, want)
			}
		}
		for _, wrong := range []string{
			"move the whole data directory", "DOCTYPE", "EOF", "reset by peer", "client: ", "consensus: ", "proto: ", "archive: ", "malformed", "context ",
		} {
			if strings.Contains(first, wrong) {
				t.Errorf("%s: the error says %q:\n%s", c.args, wrong, first)
			}
		}
		return nil
	})
	p.Stop(syscall.SIGTERM)
	for _, speaks := range []string{"HTTP", "TLS"} {
		// What was typed asks three times. A server that ends logs some.
		if got := strings.Count(p.Stderr.String(), "the client speaks "+speaks); got < 2 || got > 4 {
			t.Errorf("%d log lines about clients that speak %s, want 4", got, speaks)
		}
	}
}

// answering listens on a port whose server sends a text to each client, and waits for the client to
// leave, or closes the connection at once if there is no text.
func answering(t *testing.T, text string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	clients.Go(func() { // ends when the listener is closed; awaited below
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { // ends when the client has left; awaited below
				if _, err := io.WriteString(c, text); text != "" && err == nil {
					_, _ = io.Copy(io.Discard, c) // the client may be gone
				}
				_ = c.Close() // the client sees what it gets
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); clients.Wait() })
	return l.Addr().String()
}
