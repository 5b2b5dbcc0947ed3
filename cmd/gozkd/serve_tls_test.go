package main

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// secureWord asks a word over TLS.
func secureWord(t *testing.T, address, word string, cfg *tls.Config) (string, error) {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, cfg)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(word)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// A certificate that ends within a week is named by status, top and the probes of a server that
// serves, until the file is replaced. The exit status of status does not change.
func TestServe_CertificateEnds(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}, NotAfter: time.Now().Add(60 * time.Hour)}).Files(t)
	secure := strconv.Itoa(reserveRange(t, 1))
	p := launch(t, "--memory", "--client-port", "0", "-o", "secureClientPort="+secure, "-o", "admin.serverPort=0",
		"-o", "ssl.keyStore.location="+files.Key, "-o", "ssl.trustStore.location="+files.CA)
	want := "critical: ssl.keyStore.location: " + files.Key + ": the certificate of secureClientPort " + secure + " expires in 2.5 days, at "
	says := func() map[string]string {
		_, probe := ask(t, nil, http.MethodGet, strings.TrimSuffix(p.ports.Admin, "/commands")+"/readyz?verbose")
		status, text, errs := runCommand("status", "-server", p.ports.Client)
		_, inJSON, _ := runCommand("status", "-server", p.ports.Client, "-output", "json")
		_, top, _ := runCommand("top", "-once", "-interval", "100ms", "-server", p.ports.Client)
		if status != 0 || errs != "" {
			t.Errorf("status %d: %s", status, errs)
		}
		return map[string]string{"readyz": probe, "status": text, "JSON": inJSON, "top": top}
	}
	for what, text := range says() {
		if !strings.Contains(text, want) {
			t.Errorf("%s says\n%s\nwant %s", what, text, want)
		}
	}
	next := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}})
	testca.WriteFile(t, files.Key, next.KeyPEM(t), next.CertPEM())
	await(t, "the new certificate", func() error {
		for what, text := range says() {
			if strings.Contains(text, "certificate") {
				return errors.New(what + " says " + text)
			}
		}
		return nil
	})
}

// Clients with a certificate connect to the secure port and to the unified port, and the subject of
// the superuser passes every ACL. Replaced files and SIGHUP change certificates without a restart.
func TestServe_TLS(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGHUP there")
	}
	dir, ca := t.TempDir(), testca.New(t, "root")
	alice := ca.Issue(t, testca.Spec{CN: "alice"}).Client("zk")
	first, second := ca.Issue(t, testca.Spec{CN: "first", Hosts: []string{"zk"}}), ca.Issue(t, testca.Spec{CN: "second", Hosts: []string{"zk"}})
	files, other := first.Files(t), ca.Issue(t, testca.Spec{CN: "third", Hosts: []string{"zk"}}).Files(t)
	secure := net.JoinHostPort("127.0.0.1", strconv.Itoa(reserveRange(t, 1)))
	_, port, _ := net.SplitHostPort(secure)
	file := filepath.Join(dir, "zoo.cfg")
	write := func(key string) {
		testca.WriteFile(t, file, []byte(strings.Join([]string{
			"dataDir=" + dir, "clientPort=0", "clientPortAddress=127.0.0.1", "secureClientPortAddress=127.0.0.1", "client.portUnification=true", "secureClientPort=" + port, "4lw.commands.whitelist=*",
			"ssl.keyStore.location=" + key, "ssl.trustStore.location=" + files.CA, "X509AuthenticationProvider.superUser=CN=alice", "",
		}, "\n")))
	}
	write(files.Key)
	p := launch(t, "serve", file)
	if !strings.HasSuffix(p.ports.Secure, ":"+port) {
		t.Errorf("port file %s", p.PortFile)
	}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, alice)
	}
	for _, address := range []string{secure, p.ports.Client} {
		c, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithDialer(dial), zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			t.Fatal(err)
		}
		path := "/of-" + address
		if _, err := c.Create(path, nil, 0, zk.DigestACL(zk.PermAll, "somebody", "else")); err != nil {
			t.Error(err)
		}
		if _, _, err := c.Get(path); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	if answer := word(t, p.ports.Client, "ruok"); answer != "imok" {
		t.Errorf("without TLS: %q", answer)
	}
	nobody := alice.Clone()
	nobody.Certificates = nil
	if answer, err := secureWord(t, secure, "ruok", nobody); err == nil {
		t.Errorf("without a certificate: %q", answer)
	}

	awaitCertificate := func(name string) {
		t.Helper()
		late, poll := watchdog.After(t, 20*time.Second), time.NewTicker(20*time.Millisecond)
		defer poll.Stop()
		for {
			var got string
			c, err := tls.Dial("tcp", secure, alice)
			if err == nil {
				got = c.ConnectionState().PeerCertificates[0].Subject.CommonName
				_ = c.Close()
			}
			if got == name {
				return
			}
			select {
			case <-poll.C:
			case <-late:
				t.Fatalf("the certificate is %q, want %q: %v", got, name, err)
			}
		}
	}
	awaitCertificate("first")
	testca.WriteFile(t, files.Key, second.KeyPEM(t), second.CertPEM())
	awaitCertificate("second")
	write(other.Key)
	p.Signal(syscall.SIGHUP)
	awaitCertificate("third")
	if status := p.Stop(os.Interrupt); status != 0 {
		t.Errorf("exit status %d: %s", status, &p.Stderr)
	}
	if !strings.Contains(p.Stderr.String(), "no certificate") {
		t.Errorf("no line says why a client was refused:\n%s", &p.Stderr)
	}
}

// A server whose key store cannot be opened does not start, and says which key is wrong without the
// password.
func TestServe_TLSWrongPassword(t *testing.T) {
	dir := t.TempDir()
	file := testca.WriteFile(t, filepath.Join(dir, "zoo.cfg"), []byte("dataDir="+dir+"\nsecureClientPort=1\nssl.clientAuth=none\n"+
		"ssl.keyStore.location=../../cmd/gozkd/internal/tlsconf/testdata/keytool.jks\nssl.keyStore.password=planted\n"))
	for _, command := range []string{"serve", "check-config"} {
		var out, stderr strings.Builder
		env := outside(&out, &stderr)
		if status := run("gozkd", []string{command, file}, env); status != 1 {
			t.Errorf("%s: status %d: %s", command, status, &stderr)
		}
		if got := stderr.String(); !strings.Contains(got, "ssl.keyStore.location: ../../cmd/gozkd/internal/tlsconf/testdata/keytool.jks: the password is wrong") || strings.Contains(got+out.String(), "planted") {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// The password of the key store is in no log line, no four-letter word, no answer of the admin
// server, and no metric.
func TestServe_TLSPlantedSecret(t *testing.T) {
	const secret = "secret1" // of the golden file
	dir := t.TempDir()
	store := filepath.Join(dir, "keytool.jks")
	golden, err := os.ReadFile("../../cmd/gozkd/internal/tlsconf/testdata/keytool.jks")
	if err != nil {
		t.Fatal(err)
	}
	testca.WriteFile(t, store, golden)
	token := testca.WriteFile(t, filepath.Join(dir, "token"), []byte("0123456789abcdef"))
	file := testca.WriteFile(t, filepath.Join(dir, "zoo.cfg"), []byte(strings.Join([]string{
		"dataDir=" + dir, "clientPort=0", "client.portUnification=true", "4lw.commands.whitelist=*", "gozkd.logLevel=trace", "gozkd.admin.tokenFile=" + token, "admin.serverPort=0",
		"metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "metricsProvider.httpHost=127.0.0.1", "metricsProvider.httpPort=0",
		"ssl.clientAuth=none", "ssl.keyStore.location=" + store, "ssl.keyStore.password=" + secret, "",
	}, "\n")))
	p := launch(t, "serve", file, "-Dzookeeper.ssl.trustStore.password="+secret)
	var said strings.Builder
	for _, w := range strings.Fields("conf cons dump envi mntr srvr stat") {
		said.WriteString(word(t, p.ports.Client, w))
	}
	ask := func(url string) {
		_, body := request(t, http.MethodGet, url, "Authorization", "Bearer 0123456789abcdef")
		said.WriteString(body)
	}
	ask(p.ports.Metrics)
	for _, c := range strings.Fields("configuration initial_configuration system_properties environment monitor server_stats") {
		ask(p.ports.Admin + "/" + c)
	}
	for _, want := range []string{"zk_gozkd_tls_certificate_expires_seconds\t6", "\ngozkd_tls_reloads_total 0\n"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, &said)
		}
	}
	if !strings.Contains(said.String(), "ssl.keyStore.password") {
		t.Error("no answer has the key of the password, so this test looks in the wrong place")
	}
	testca.WriteFile(t, store, []byte("damaged"))
	_, answer := request(t, http.MethodPost, p.ports.Admin+"/reload", "Authorization", "Bearer 0123456789abcdef")
	if said.WriteString(answer); !strings.Contains(answer, "ssl.keyStore.location") {
		t.Errorf("reload: %s", answer)
	}
	p.Stop(os.Interrupt)
	for what, text := range map[string]string{"an answer": said.String(), "the log": p.Stderr.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the password:\n%s", what, text)
		}
	}
}

// A server with secureClientPort and without clientPort has no plain port.
func TestServe_SecureOnly(t *testing.T) {
	dir, ca := t.TempDir(), testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
	port := strconv.Itoa(reserveRange(t, 1))
	file := testca.WriteFile(t, filepath.Join(dir, "zoo.cfg"), []byte(strings.Join([]string{
		"dataDir=" + dir, "secureClientPort=" + port, "secureClientPortAddress=127.0.0.1", "4lw.commands.whitelist=*", "admin.enableServer=false",
		"ssl.keyStore.location=" + files.Key, "ssl.trustStore.location=" + files.CA, "",
	}, "\n")))
	p := launch(t, "serve", file)
	if p.ports.Client != "" || p.ports.Secure != "127.0.0.1:"+port {
		t.Errorf("port file %s", p.PortFile)
	}
	if answer, err := secureWord(t, p.ports.Secure, "ruok", ca.Issue(t, testca.Spec{}).Client("zk")); err != nil || answer != "imok" {
		t.Errorf("%q, %v", answer, err)
	}
	if status := p.Stop(os.Interrupt); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if log := p.Stderr.String(); !strings.Contains(log, "serving clients: secure_address=127.0.0.1:"+port) {
		t.Errorf("%s", log)
	}
}
