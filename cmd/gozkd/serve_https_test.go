package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/testca"
)

// ask sends a request with pairs of a header's name and value, and returns status 0 if it fails.
func ask(t *testing.T, cfg *tls.Config, method, url string, headers ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Close = true
	transport := &http.Transport{TLSClientConfig: cfg}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// runCommand runs a command as main does, in this process.
func runCommand(args ...string) (status int, out, errs string) {
	var stdout, stderr bytes.Buffer
	status = run("gozkd", args, cli.Env{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }})
	return status, stdout.String(), stderr.String()
}

// The admin server speaks only HTTPS, and the holder of an administrator's certificate needs no
// other authorization. Metrics are served by HTTPS with stores of their own.
func TestServe_HTTPS(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{"127.0.0.1"}}).Files(t)
	alice, bob := ca.Issue(t, testca.Spec{CN: "alice"}), ca.Issue(t, testca.Spec{CN: "bob"})
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.forceHttps=true",
		"-o", "ssl.quorum.keyStore.location="+files.Key, "-o", "ssl.quorum.trustStore.location="+files.CA, "-o", "gozkd.admin.x509=CN=root;CN=alice",
		"-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "-o", "metricsProvider.httpHost=127.0.0.1",
		"-o", "metricsProvider.httpsPort=0", "-o", "metricsProvider.ssl.keyStore.location="+files.Key, "-o", "metricsProvider.ssl.trustStore.location="+files.CA)
	if !strings.HasPrefix(p.ports.Admin, "https://127.0.0.1:") || !strings.HasPrefix(p.ports.Metrics, "https://127.0.0.1:") {
		t.Fatalf("port file %s", p.PortFile)
	}
	asAlice, asBob, asNobody := alice.Client(""), bob.Client(""), &tls.Config{RootCAs: ca.Pool()}
	for _, c := range []struct {
		as          *tls.Config
		method, url string
		status      int
	}{
		{asNobody, http.MethodGet, p.ports.Admin + "/ruok", 200},
		{asNobody, http.MethodPost, p.ports.Admin + "/reload", 401},
		{asBob, http.MethodPost, p.ports.Admin + "/reload", 401},
		{asAlice, http.MethodPost, p.ports.Admin + "/reload", 200},
		{testca.New(t, "other").Issue(t, testca.Spec{CN: "alice"}).Client(""), http.MethodGet, p.ports.Admin + "/ruok", 0},
		{nil, http.MethodGet, strings.Replace(p.ports.Admin, "https", "http", 1) + "/ruok", 400},
		{asBob, http.MethodGet, p.ports.Metrics, 200},
		{asNobody, http.MethodGet, p.ports.Metrics, 0},
	} {
		if status, body := ask(t, c.as, c.method, c.url); status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.url, status, body, c.status)
		}
	}
	// A page of another origin must not use the certificate through a browser.
	if status, _ := ask(t, asAlice, http.MethodPost, p.ports.Admin+"/reload", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("from another origin: %d", status)
	}

	one := alice.Files(t)
	file := filepath.Join(t.TempDir(), "backup")
	from := strings.TrimSuffix(p.ports.Admin, "/commands")
	if status, out, errs := runCommand("backup", "--from", from, "--cacert", one.CA, "--cert", one.Key, file); status != 0 || !strings.Contains(out, "read back and verified") {
		t.Errorf("backup: %d %s%s", status, out, errs)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--from", from}, "; name the file with the certificate of its authority with --cacert"},
		{[]string{"--from", from, "--cacert", one.CA, "--tls-server-name", "elsewhere"}, "--tls-server-name"},
		{[]string{"--from", "http://" + p.ports.Client, "--cacert", one.CA}, "https://HOST:8080"},
	} {
		if status, _, errs := runCommand(append(append([]string{"backup"}, c.args...), file+"2")...); status == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%q: %d %s", c.args, status, errs)
		}
	}
}

// A unified port serves HTTP and HTTPS, also while other connections are silent, and close ends
// those.
func TestEndpoints_Unified(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Files(t)
	o := tlsconf.Defaults("ssl.quorum.", tlsconf.Server)
	o.KeyStore.Location, o.ClientAuth = files.Key, tlsconf.None
	source, err := tlsconf.Load(o, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	e := new(endpoints)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(r.TLS != nil)
	})
	var lines bytes.Buffer // read after close
	plain := e.open(t.Context(), endpoint{"test", "", "127.0.0.1:0", source, true, time.Minute, 0, nil}, h, hclog.New(&hclog.LoggerOptions{Output: &lines}))
	silent, err := net.Dial("tcp", strings.TrimPrefix(plain, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{plain: "false\n", strings.Replace(plain, "http", "https", 1): "true\n"} {
		if status, body := ask(t, &tls.Config{RootCAs: ca.Pool()}, http.MethodGet, url); status != 200 || body != want {
			t.Errorf("%s: %d %q", url, status, body)
		}
	}
	refusing, err := net.Dial("tcp", strings.TrimPrefix(plain, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(refusing, &tls.Config{RootCAs: testca.New(t, "other").Pool(), ServerName: "127.0.0.1"}).HandshakeContext(t.Context()); err == nil {
		t.Error("a handshake with another authority")
	}
	_, _ = io.Copy(io.Discard, refusing) // until the server has logged the alert and closed
	_ = refusing.Close()
	if err := e.close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(lines.String(), "TLS handshake failed: from=127.0.0.1:") || !strings.Contains(lines.String(), "bad certificate") {
		t.Errorf("log: %s", lines.String())
	}
	if n, err := silent.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end", n)
	}
	_ = silent.Close()
}

// The commands reach a server whose only port for clients speaks TLS, with flags and with the
// properties of ZooKeeper's client. top finds the other members at the same port.
func TestCommands_OverTLS(t *testing.T) {
	dir, ca := t.TempDir(), testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{"127.0.0.1"}}).Files(t)
	alice := ca.Issue(t, testca.Spec{CN: "alice"}).Files(t)
	p := launch(t, "--memory", "--client-port", "0", "-o", "client.portUnification=true", "-o", "4lw.commands.whitelist=*",
		"-o", "ssl.keyStore.location="+files.Key, "-o", "ssl.trustStore.location="+files.CA)
	properties := testca.WriteFile(t, filepath.Join(dir, "client.properties"),
		[]byte("zookeeper.client.secure=true\nzookeeper.ssl.keyStore.location="+alice.Key+"\nzookeeper.ssl.trustStore.location="+alice.CA+"\n"))
	for _, secure := range [][]string{{"--tls", "--cacert", alice.CA, "--cert", alice.Cert, "--key", alice.Bare}, {"-client-configuration", properties}} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"cli", "-server", p.ports.Client}, "x509: CN=alice"},
			{[]string{"status", "-server", p.ports.Client}, "Mode: standalone"},
			{[]string{"ruok", "-ready", "-server", p.ports.Client}, "imok"},
			{[]string{"top", "-once", "-interval", "100ms", "-server", p.ports.Client}, "standalone"},
		} {
			args := append(append([]string{}, c.args...), secure...)
			if c.args[0] == "cli" {
				args = append(args, "whoami")
			}
			if status, out, errs := runCommand(args...); status != 0 || !strings.Contains(out, c.want) {
				t.Errorf("%q: %d %s%s", args, status, out, errs)
			}
		}
	}
	checkHealth(t, dir, ca)
	if status, _, errs := runCommand("status", "-server", p.ports.Client, "--cacert", alice.CA); status != 1 || !strings.Contains(errs, "--cert and --key") {
		t.Errorf("without a certificate: %d %s", status, errs)
	}
}

// checkHealth checks that the health check of a container, which only knows zoo.cfg, reaches a
// server whose only port speaks TLS, and that the flags of a client reach it too.
func checkHealth(t *testing.T, dir string, ca *testca.CA) {
	t.Helper()
	files := ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{"zk"}}).Files(t)
	alice := ca.Issue(t, testca.Spec{CN: "alice"}).Files(t)
	port := strconv.Itoa(reserveRange(t, 1))
	file := testca.WriteFile(t, filepath.Join(dir, "zoo.cfg"), []byte("dataDir="+dir+"/data\nadmin.enableServer=false\nsecureClientPort="+port+
		"\nssl.keyStore.location="+files.Key+"\nssl.trustStore.location="+files.CA+"\n"))
	launch(t, "serve", file)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ruok", "-ready", file}, "imok"},
		{[]string{"status", file}, "Client port found: " + port + ". Client address: localhost. Client SSL: true.\nMode: standalone"},
		{[]string{"status", "--cacert", alice.CA, "--cert", alice.Key, "--tls-server-name", "zk", file}, "Mode: standalone"},
	} {
		if status, out, errs := runCommand(c.args...); status != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: %d %s%s", c.args, status, out, errs)
		}
	}
}

// As in ZooKeeper 3.10, equal ports for metrics are a single one for HTTP and HTTPS.
func TestServe_MetricsUnifiedPort(t *testing.T) {
	ca := testca.New(t, "root")
	files, port := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Files(t), strconv.Itoa(unusedPort(t))
	p := launch(t, "--memory", "--client-port", "0", "-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
		"-o", "metricsProvider.httpHost=127.0.0.1", "-o", "metricsProvider.httpPort="+port, "-o", "metricsProvider.httpsPort="+port,
		"-o", "metricsProvider.ssl.keyStore.location="+files.Key, "-o", "metricsProvider.ssl.trustStore.location="+files.CA)
	plain := "http://127.0.0.1:" + port + "/metrics"
	if p.ports.Metrics != plain {
		t.Errorf("port file %s", p.PortFile)
	}
	for _, c := range []struct {
		as     *tls.Config
		url    string
		status int
	}{
		{nil, plain, 200},
		{ca.Issue(t, testca.Spec{}).Client(""), strings.Replace(plain, "http", "https", 1), 200},
		{&tls.Config{RootCAs: ca.Pool()}, strings.Replace(plain, "http", "https", 1), 0}, // without a certificate
	} {
		if status, body := ask(t, c.as, http.MethodGet, c.url); status != c.status {
			t.Errorf("%s: %d %s, want %d", c.url, status, body, c.status)
		}
	}
}
