package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/server"
)

// fetch gets a URL.
func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	return request(t, http.MethodGet, url)
}

// request sends a request with pairs of a header's name and value.
func request(t *testing.T, method, url string, headers ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// At an address that is not that of the loopback interface nobody counts as on this machine, as
// docs/guide/rest.md says, also not a process there.
func TestServe_NobodyOnThisMachine(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast()
	})
	if i < 0 {
		t.Skip("this machine has only the loopback interface")
	}
	for address, want := range map[string]int{"127.0.0.1": 200, addresses[i].(*net.IPNet).IP.String(): 401} {
		p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.serverAddress="+address)
		for path, want := range map[string]int{"/commands/hot": want, "/commands/initial_configuration": want, "/znodes/v2/": want, "/commands/ruok": 200, "/readyz": 200} {
			if status, body := fetch(t, strings.TrimSuffix(p.ports.Admin, "/commands")+path); status != want {
				t.Errorf("%s%s: %d %s, want %d", address, path, status, body, want)
			}
		}
	}
}

// The configured endpoints are served, and the port file contains their URLs.
func TestServe_Endpoints(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.commandURL=/zk/", "-o", "gozkd.pprof=true",
		"-o", "gozkd.admin.tokenFile="+token,
		"-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
		"-o", "metricsProvider.httpPort=0", "-o", "metricsProvider.httpHost=127.0.0.1")
	if !strings.HasPrefix(p.ports.Admin, "http://127.0.0.1:") || !strings.HasSuffix(p.ports.Admin, "/zk") {
		t.Fatalf("port file %s", p.PortFile)
	}
	status, body := fetch(t, p.ports.Admin+"/ruok")
	var answer struct{ Command string }
	if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil || answer.Command != "ruok" {
		t.Errorf("ruok: %d %s %v", status, body, err)
	}
	if status, body := request(t, http.MethodPost, p.ports.Admin+"/reload"); status != 401 {
		t.Errorf("reload by nobody: %d %s", status, body)
	}
	if _, body := request(t, http.MethodPost, p.ports.Admin+"/reload", "Authorization", "Bearer 0123456789abcdef"); !strings.Contains(body, `"command": "reload"`) || !strings.Contains(body, `"error": null`) {
		t.Errorf("reload: %s", body)
	}
	if status, _ := fetch(t, strings.TrimSuffix(p.ports.Admin, "/zk")+"/readyz"); status != 200 {
		t.Errorf("readyz: %d", status)
	}
	base := strings.TrimSuffix(p.ports.Admin, "/zk")
	if status, body := fetch(t, base+"/debug/pprof/goroutine?debug=1"); status != 200 || !strings.HasPrefix(body, "goroutine profile:") {
		t.Errorf("profile: %d %.80s", status, body)
	}
	status, body = fetch(t, p.ports.Metrics)
	for _, line := range []string{"\nznode_count ", "\ngo_goroutines ", "\nprocess_resident_memory_bytes "} {
		if status != 200 || !strings.Contains(body, line) {
			t.Errorf("metrics have no %q: %d", line, status)
		}
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Nobody takes the state of a server as it comes. A tool on its machine that can read the data
// directory can, also after a restart, with the token that it read before.
func TestServe_AdminToken(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, config.DefaultDataDir)
	bearer := ""
	for i := range 2 {
		p := launch(t, "--data-dir", data, "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.rateLimiterIntervalInMS=0")
		for who, want := range map[string]int{"digest a:b": 403, "ip 127.0.0.1": 403, "Bearer 0123456789abcdef": 401} {
			if status, body := request(t, http.MethodGet, p.ports.Admin+"/snapshot", "Authorization", who); status != want || !strings.Contains(body, "admin.token") {
				t.Errorf("by %s: %d %.300s", who, status, body)
			}
		}
		text, err := os.ReadFile(filepath.Join(data, "admin.token"))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			bearer = "Bearer " + strings.TrimSpace(string(text))
		}
		if status, body := request(t, http.MethodGet, p.ports.Admin+"/stat_reset", "Authorization", bearer); status != 200 {
			t.Errorf("with the token: %d %.300s", status, body)
		}
		base := strings.TrimSuffix(p.ports.Admin, "/commands")
		must(t, "backup", "--from", base, "--auth-file", filepath.Join(data, "admin.token"), filepath.Join(dir, fmt.Sprintf("a%d.db", i)))
		// As a newcomer does: in the directory where the server was started.
		backup := program.Command("backup", "--from", base, fmt.Sprintf("b%d.db", i))
		backup.Dir = dir
		if out, err := backup.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if status := p.Stop(syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
}

// fromHost is a connection whose peer has an address of our choice.
type fromHost struct {
	net.Conn
	host string
}

func (c fromHost) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.host), Port: 4711} }

// While requests are answered on all connections, those beyond the bounds are closed at once, the
// last ones are kept for this machine, and a closed connection no longer counts.
func TestBoundedListener(t *testing.T) {
	conns := make(chan net.Conn, 1)
	l := newBoundedListener(handed{conn: conns, close: func() { close(conns) }}, 0)
	next := func(host string) net.Conn { // nil if it was closed
		t.Helper()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		conns <- fromHost{theirs, host}
		accepted := make(chan net.Conn)
		go func() { // ends with the next connection, if this one is refused
			c, _ := l.Accept()
			accepted <- c
		}()
		refused := make(chan struct{})
		go func() { // ends when the connection does
			_, _ = ours.Read(make([]byte, 1))
			close(refused)
		}()
		select {
		case c := <-accepted:
			c.(*boundedConn).answering.Add(1)
			return c
		case <-refused:
			ours, theirs := net.Pipe() // lets Accept return
			t.Cleanup(func() { _ = ours.Close() })
			conns <- fromHost{theirs, "127.0.0.1"}
			_ = (<-accepted).Close()
			return nil
		}
	}
	var open []net.Conn
	for i := range httpConnsPerHost {
		c := next(fmt.Sprintf("2001:db8::%x", i)) // one network
		if c == nil {
			t.Fatalf("connection %d of a network is refused", i)
		}
		open = append(open, c)
	}
	if next("2001:db8::ffff") != nil {
		t.Error("one connection too many of a network")
	}
	_ = open[0].Close()
	_ = open[0].Close() // must not count twice
	if next("2001:db8::1") == nil || next("2001:db8::1") != nil {
		t.Error("closing a connection makes room for other than one")
	}
	for i := range httpConns - localConns - httpConnsPerHost {
		if next(fmt.Sprintf("192.0.2.%d", i)) == nil {
			t.Fatalf("host %d is refused", i)
		}
	}
	if next("198.51.100.1") != nil {
		t.Error("one connection too many from elsewhere")
	}
	for i := range localConns {
		if next("127.0.0.1") == nil {
			t.Fatalf("connection %d from this machine is refused", i)
		}
	}
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()
	conns <- fromHost{theirs, "127.0.0.1"}
	_ = l.Close()
	if c, err := l.Accept(); err == nil {
		t.Errorf("one connection too many: %v", c)
	}
}

// Ports that are taken do not prevent serving clients.
func TestServe_EndpointsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort="+port, "-o", "metricsProvider.httpHost=127.0.0.1",
		"-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "-o", "metricsProvider.httpPort="+port)
	if p.ports.Admin != "" || p.ports.Metrics != "" {
		t.Errorf("port file %s", p.PortFile)
	}
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, line := range []string{
		"not served: admin server: address=127.0.0.1:" + port, "not served: metrics: address=127.0.0.1:" + port,
		`remedy="name a free port with admin.serverPort"`, `remedy="name a free port with metricsProvider.httpPort"`,
	} {
		if !strings.Contains(p.Stderr.String(), line) {
			t.Errorf("no %q in\n%s", line, &p.Stderr)
		}
	}
}

// Profiles are restricted to this machine, whatever the listen address.
func TestLocalOnly(t *testing.T) {
	h := localOnly(http.NotFoundHandler())
	for from, want := range map[string]int{"127.0.0.1:5": 404, "[::1]:5": 404, "[::ffff:127.0.0.1]:5": 404, "10.0.0.1:5": 403, "pipe": 403} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, &http.Request{RemoteAddr: from})
		if w.Code != want {
			t.Errorf("%s: %d, want %d", from, w.Code, want)
		}
	}
	for what, r := range map[string]*http.Request{
		"a proxy on this machine": {RemoteAddr: "127.0.0.1:5", Header: http.Header{"X-Forwarded-For": {"10.0.0.1"}}},
		"a web page":              {RemoteAddr: "127.0.0.1:5", Host: "evil.example.com"},
	} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 403 {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
}

// metricsProvider.exportJvmInfo=false omits metrics of the process.
func TestMetricsHandler(t *testing.T) {
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, ofProcess := range []bool{true, false} {
		w := httptest.NewRecorder()
		metricsHandler(config.Config{MetricsRuntime: ofProcess}, s, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if got := strings.Contains(w.Body.String(), "go_goroutines"); w.Code != 200 || got != ofProcess {
			t.Errorf("with the runtime: %t, wanted: %t, status %d", got, ofProcess, w.Code)
		}
	}
}

// On the loopback interface, requests for foreign host names are refused.
func TestRefuseForeignHosts(t *testing.T) {
	at := func(address string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		listens, local, host string
		status               int
	}{
		{"127.0.0.1", "127.0.0.1:8080", "127.0.0.1:8080", 404},
		{"127.0.0.1", "127.0.0.1:8080", "127.0.0.1", 404},
		{"127.0.0.1", "127.0.0.1:8080", "localhost:8080", 404},
		{"127.0.0.1", "127.0.0.1:8080", "LocalHost.", 404},
		{"127.0.0.1", "127.0.0.1:8080", "zk.localhost:8080", 404},
		{"127.0.0.1", "127.0.0.1:8080", "intranet:8080", 421},
		{"127.0.0.1", "127.0.0.1:8080", "", 404},
		{"::1", "[::1]:8080", "[::1]:8080", 404},
		{"::1", "[::1]:8080", "[::1]", 404},
		{"zk1.example.org", "127.0.0.1:8080", "zk1.example.org:8080", 404},
		{"127.0.0.1", "127.0.0.1:8080", "example.org:8080", 421},
		{"127.0.0.1", "127.0.0.1:8080", "127.0.0.1.example.org", 421},
		{"127.0.0.1", "127.0.0.1:8080", "localhost.example.org:8080", 421},
		{"localhost", "[::1]:8080", "example.org", 421},
		{"0.0.0.0", "127.0.0.1:8080", "zk1.example.org:8080", 404},
		{"::", "[::1]:8080", "zk1.example.org:8080", 404},
		{"10.0.0.1", "10.0.0.1:8080", "zk1.example.org:8080", 404},
	} {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at(c.local)), http.MethodGet, "/", nil)
		req.Host = c.host
		refuseForeignHosts(http.NotFoundHandler(), c.listens).ServeHTTP(w, req)
		if w.Code != c.status {
			t.Errorf("%s, asked for %q at %s: %d, want %d", c.listens, c.host, c.local, w.Code, c.status)
		}
	}
}

// After close, no handler is running.
func TestEndpoints_Close(t *testing.T) {
	for range 20 {
		e, begun, over := new(endpoints), make(chan struct{}), new(atomic.Bool)
		h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			close(begun)
			<-req.Context().Done()
			runtime.Gosched()
			over.Store(true)
		})
		url := e.open(t.Context(), endpoint{what: "test", address: "127.0.0.1:0", idle: time.Minute}, h, hclog.NewNullLogger())
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
		if err := e.close(); err != nil || !over.Load() {
			t.Errorf("closed, and the answer is over: %t, %v", over.Load(), err)
		}
		_ = conn.Close()
	}
}

// handed is a listener with one connection.
type handed struct {
	conn  chan net.Conn
	close func()
}

func (l handed) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l handed) Close() error   { l.close(); return nil }
func (l handed) Addr() net.Addr { return &net.TCPAddr{} }

// The server does not wait for clients that stop sending or reading.
func TestHTTPServer_Patience(t *testing.T) {
	const idle = 30 * time.Second
	head := "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct {
		what, sends string
		answer      int // bytes
		reads       bool
		closed      time.Duration
	}{
		{"nothing", "", 0, true, requestTimeout},
		{"half a head", head, 0, true, requestTimeout},
		{"a head that is too long", head + "X: " + strings.Repeat("x", 2*headBytes), 0, true, time.Second}, // the rest is left to read
		{"a request, and no other", head + "\r\n", 5, true, idle},
		{"half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", 0, true, requestTimeout},
		{"a body in half a part", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 0, true, requestTimeout},
		{"a request, and takes no answer", head + "\r\n", 1 << 20, false, answerTimeout},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = w.Write(make([]byte, c.answer))
				}), idle, hclog.NewNullLogger())
				conns := make(chan net.Conn, 1)
				l := handed{conn: conns, close: sync.OnceFunc(func() { close(conns) })}
				ended := make(chan struct{})
				go func() { // stopped by Close, awaited through ended
					defer close(ended)
					_ = server.Serve(l)
				}()
				ours, theirs := net.Pipe()
				start, end := time.Now(), make(chan time.Time)
				conns <- watchedConn{theirs, sync.OnceFunc(func() { end <- time.Now() })}
				go func() { // ends with the connection
					_, _ = io.WriteString(ours, c.sends)
				}()
				if c.reads {
					go func() { // ends with the connection
						_, _ = io.Copy(io.Discard, ours)
					}()
				}
				if took := (<-end).Sub(start); took > c.closed {
					t.Errorf("closed after %v, want %v", took, c.closed)
				}
				_ = server.Close()
				<-ended
			})
		})
	}
}

// watchedConn reports when it is closed.
type watchedConn struct {
	net.Conn
	closed func()
}

func (c watchedConn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}

// The admin server's root leads to the explorer, whoever asks. Commands are answered as before.
func TestServe_Root(t *testing.T) {
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0")
	base := strings.TrimSuffix(p.ports.Admin, "/commands")
	if status, body := request(t, http.MethodGet, base+"/", "Accept", "text/html,*/*;q=0.8"); status != 200 || !strings.Contains(body, "<html") {
		t.Errorf("a browser: %d %.100s", status, body)
	}
	for _, c := range [][2]string{{"/", "text/html"}, {"/", "*/*"}, {"/ui", "text/html"}} { // also below the prefix of a proxy
		path, accept := c[0], c[1]
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		r.Header = http.Header{"Accept": {accept}, "X-Forwarded-Prefix": {"/zk"}}
		answer, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if at := answer.Header.Get("Location"); answer.StatusCode != http.StatusFound || at != "/zk/ui/" {
			t.Errorf("%s: %s to %q", path, answer.Status, at)
		}
	}
	if status, body := request(t, http.MethodGet, p.ports.Admin+"/ruok", "Accept", "text/html"); status != 200 || !strings.Contains(body, "ruok") {
		t.Errorf("a command: %d %.100s", status, body)
	}
}
