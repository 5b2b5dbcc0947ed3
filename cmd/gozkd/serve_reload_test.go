package main

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// awaitWord asks a word until the answer contains want.
func awaitWord(t *testing.T, address, w, want string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(t, 10*time.Second)
	for {
		got := word(t, address, w)
		if strings.Contains(got, want) {
			return
		}
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("%s says %q, want %q", w, got, want)
		}
	}
}

// SIGHUP applies the keys that can change at runtime, and names those that need a restart.
func TestServe_Reload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGHUP there")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	write := func(text string) { // atomically, because it is read at any time
		t.Helper()
		text = "dataDir=" + filepath.ToSlash(filepath.Join(dir, "data")) + "\nclientPort=0\nminSessionTimeout=5000\nmaxSessionTimeout=9000\n" + text
		if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("4lw.commands.whitelist=conf\nmaxClientCnxns=50\n")
	p := launch(t, "serve", file)
	awaitWord(t, p.ports.Client, "conf", "maxClientCnxns=50\n")
	write("4lw.commands.whitelist=conf,ruok\nmaxClientCnxns=51\ntickTime=1234\ngozkd.logLevel=debug\n")
	p.Signal(syscall.SIGHUP)
	awaitWord(t, p.ports.Client, "conf", "maxClientCnxns=51\n")
	awaitWord(t, p.ports.Client, "ruok", "imok")
	if conf := word(t, p.ports.Client, "conf"); !strings.Contains(conf, "tickTime=3000\n") {
		t.Errorf("conf:\n%s", conf)
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, line := range []string{
		`configuration reloaded: changed="maxClientCnxns, 4lw.commands.whitelist, gozkd.logLevel"`,
		"need a restart: keys=tickTime\n",
	} {
		if !strings.Contains(p.Stderr.String(), line) {
			t.Errorf("no %q in\n%s", line, &p.Stderr)
		}
	}
}

// An invalid file changes nothing and is reported. Keys marked as reloadable are applied, and a
// change of another is reported. TestTable_ReloadsLikeTheServer walks all keys.
func TestReloader(t *testing.T) {
	load := func(args ...string) config.Config {
		t.Helper()
		_, c, err := config.Load(append([]string{"--memory"}, args...), func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := load()
	s, err := server.New(serverConfig(first, hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	var next config.Config
	var wrong error
	r := &reloader{
		server: s, tls: &portTLS{log: hclog.NewNullLogger()}, logins: new(mechanisms), started: first, last: first, log: hclog.NewNullLogger(),
		again: func() (*config.Invocation, config.Config, error) { return new(config.Invocation), next, wrong },
	}
	wrong = errors.New("zoo.cfg:1: tickTime: is \"x\"")
	if restart, err := r.reload(); !errors.Is(err, wrong) || restart != nil {
		t.Errorf("a bad file: %v %v", restart, err)
	}
	wrong = nil
	for _, set := range []string{
		"minSessionTimeout=5999", "maxSessionTimeout=59999", "maxClientCnxns=0", "maxCnxns=7", "globalOutstandingLimit=9", "nio.sessionlessCnxnTimeout=5",
		"4lw.commands.whitelist=stat", "readonlymode.enabled=true", "reconfigEnabled=true", "enforceQuota=true", "DigestAuthenticationProvider.superDigest=super:xQJm",
		"DigestAuthenticationProvider.enabled=false", "znode.container.maxPerMinute=3", "znode.container.maxNeverUsedIntervalMs=0", "fsync.warningthresholdms=2",
		"connectionMaxTokens=5", "connectionTokenFillTime=3", "connectionTokenFillCount=4", "connectionFreezeTime=0", "connectionDropIncrease=0.5",
		"connectionDropDecrease=0.25", "connectionDecreaseRatio=1", "connection_throttle_weight_enabled=true",
		"connection_throttle_global_session_weight=5", "connection_throttle_local_session_weight=3", "connection_throttle_renew_session_weight=4",
		"requestThrottleLimit=6", "requestThrottleStallTime=7", "requestStaleLatencyCheck=true", "requestThrottleDropStale=false", "throttledOpWaitTime=8",
		"netty.server.outstandingHandshake.limit=3", "X509AuthenticationProvider.superUser=CN=a", "gozkd.x509.id=cn",
		"allowSaslFailedClients=true", "letAnySaslUserDoX=x", "sessionRequireClientSASLAuth=true", "ensembleAuthName=a", "extendedTypesEnabled=false",
		"metricsProvider.ssl.need.client.auth=false", "metricsProvider.ssl.want.client.auth=false",
		"gozkd.logLevel=off", "gozkd.slowRequestThresholdMs=5", "gozkd.maxFeatureLevel=1",
		"gozkd.clientMemoryKB=70000", "gozkd.watchMemoryKB=7", "gozkd.budgetWaitMs=7", "gozkd.enforceBudgets=false",
	} {
		next = load("-o", set)
		key, _, _ := strings.Cut(set, "=")
		if reload, restart := first.Changes(next); !slices.Equal(reload, []string{key}) || restart != nil {
			t.Errorf("%s: reloads %v, needs a restart %v", set, reload, restart)
		}
		if restart, err := s.Reload(serverConfig(next, hclog.NewNullLogger())); err != nil || restart != nil {
			t.Errorf("%s: the server wants a restart for %v, %v", set, restart, err)
		}
		if err := r.forAdmin(); err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
	reloadEndsLogins(t, r, s)
	admin := load("-o", "admin.enableServer=true")
	if reload, restart := admin.Changes(load("-o", "admin.enableServer=true", "-o", "gozkd.admin.x509=CN=a")); !slices.Equal(reload, []string{"gozkd.admin.x509"}) || restart != nil {
		t.Errorf("administrators: reloads %v, needs a restart %v", reload, restart)
	}
	next = load("-o", "tickTime=1234", "-o", "snapCount=5", "-o", "clientPortListenBacklog=5")
	for range 2 { // repeated at each reload
		if err := r.forAdmin(); err == nil || err.Error() != "reloaded, but these keys need a restart: tickTime, snapCount, clientPortListenBacklog" {
			t.Errorf("%v", err)
		}
	}
}

// reloadEndsLogins logs a digest user in on this machine, and reloads.
func reloadEndsLogins(t *testing.T, r *reloader, s *server.Server) {
	t.Helper()
	roles, err := web.ParseRoles("read=digest:" + plant{}.digestOf("u", "p"))
	if err != nil {
		t.Fatal(err)
	}
	pages := web.New(s, web.Options{Roles: roles})
	defer pages.Close()
	r.servesWeb(pages)
	ask := func(method, path, body string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		req.RemoteAddr = "127.0.0.1:9"
		req.Header.Set("Content-Type", "application/json")
		for _, c := range cookies {
			req.AddCookie(c)
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, req)
		return w
	}
	login := ask("POST", "/ui/api/login", `{"scheme":"digest","user":"u","password":"p"}`)
	if login.Code != 200 || len(login.Result().Cookies()) != 1 {
		t.Fatalf("login: %d, %s", login.Code, login.Body)
	}
	cookie, known := login.Result().Cookies()[0], `"scheme":"digest"`
	if a := ask("GET", "/identity/v2", "", cookie); !strings.Contains(a.Body.String(), known) {
		t.Errorf("logged in: %s", a.Body)
	}
	if err := r.forAdmin(); err != nil {
		t.Error(err)
	}
	if a := ask("GET", "/identity/v2", "", cookie); strings.Contains(a.Body.String(), known) {
		t.Errorf("after the reload: %s", a.Body)
	}
}

// SIGHUP turns TLS on, and a key store that cannot be opened changes nothing.
func TestReloader_TLS(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
	load := func(settings ...string) config.Config {
		t.Helper()
		args := []string{"--memory", "--client-port", "0"}
		for _, s := range settings {
			args = append(args, "-o", s)
		}
		_, c, err := config.Load(args, func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := load()
	s, err := server.New(serverConfig(next, hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	tlsOf := &portTLS{log: hclog.NewNullLogger()}
	t.Cleanup(tlsOf.close)
	r := &reloader{
		server: s, tls: tlsOf, started: next, last: next, log: hclog.NewNullLogger(),
		again: func() (*config.Invocation, config.Config, error) { return new(config.Invocation), next, nil },
	}
	unified := []string{"4lw.commands.whitelist=*", "client.portUnification=true", "ssl.trustStore.location=" + files.CA, "ssl.keyStore.location="}
	next = load(append(unified[:3:3], unified[3]+filepath.Join(t.TempDir(), "missing.pem"))...)
	if err := r.forAdmin(); err == nil || !strings.Contains(err.Error(), "ssl.keyStore.location") {
		t.Errorf("%v", err)
	}
	client := ca.Issue(t, testca.Spec{}).Client("zk")
	if answer, err := secureWord(t, s.ConnectString(), "ruok", client); err == nil {
		t.Errorf("before TLS is on: %q", answer)
	}
	for _, auth := range []string{"need", "none"} {
		next = load(append(unified[:3:3], unified[3]+files.Key, "ssl.clientAuth="+auth)...)
		if err := r.forAdmin(); err != nil {
			t.Fatal(err)
		}
		if answer, err := secureWord(t, s.ConnectString(), "ruok", client); err != nil || answer != "imok" {
			t.Errorf("%s: %q, %v", auth, answer, err)
		}
		client.Certificates = nil
	}
}

// A reload that fails changes nothing, even if the stores of before are gone: the server shows the
// same certificate as before.
func TestReloader_FailsAsAWhole(t *testing.T) {
	ca := testca.New(t, "root")
	first, second := ca.Issue(t, testca.Spec{CN: "first"}), ca.Issue(t, testca.Spec{CN: "second"})
	old := first.Files(t)
	load := func(clients testca.Files, admin string) config.Config {
		t.Helper()
		_, c, err := config.Load([]string{
			"--memory", "--client-port", "0", "-o", "client.portUnification=true", "-o", "ssl.clientAuth=none", "-o", "ssl.keyStore.location=" + clients.Key,
			"-o", "admin.forceHttps=true", "-o", "ssl.quorum.keyStore.location=" + admin,
		}, func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(old, old.Key)
	ports := &portTLS{log: hclog.NewNullLogger()}
	t.Cleanup(ports.close)
	plain := c
	plain.Server.PortUnification = false
	s, err := server.New(serverConfig(plain, hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r := &reloader{server: s, tls: ports, logins: new(mechanisms), started: c, last: c, log: hclog.NewNullLogger()}
	if _, err := r.apply(c); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(old.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(load(second.Files(t), "missing.pem")); err == nil {
		t.Fatal("a missing store is accepted")
	}
	shown, err := ports.config.GetConfigForClient(&tls.ClientHelloInfo{Conn: nil})
	if err != nil {
		t.Fatal(err)
	}
	if cn := shown.Certificates[0].Leaf.Subject.CommonName; cn != "first" {
		t.Errorf("after a reload that failed the certificate is %q", cn)
	}
}

// If a zoo.cfg from a directory is missing at a reload, nothing changes: the environment does not
// replace it.
func TestReloader_FileGone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte("dataDir="+filepath.ToSlash(dir)+"\nmaxClientCnxns=7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string {
		return map[string]string{"ZOO_CONF_DIR": dir, "ZOO_DATA_DIR": dir, "ZOO_MAX_CLIENT_CNXNS": "9"}[name]
	}
	load := func() (*config.Invocation, config.Config, error) { return config.Load(nil, getenv, nil) }
	inv, first, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(serverConfig(first, hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	r := &reloader{server: s, tls: &portTLS{log: hclog.NewNullLogger()}, again: load, file: inv.File, started: first, last: first, log: hclog.NewNullLogger()}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if restart, err := r.reload(); err == nil || err.Error() != file+" is gone" || restart != nil {
		t.Errorf("%v %v", restart, err)
	}
	if !slices.Contains(s.Facts().Settings(), server.Setting{Key: "maxClientCnxns", Value: "7"}) {
		t.Errorf("%v", s.Facts().Settings())
	}
	if err := os.Rename(file+".old", file); err != nil {
		t.Fatal(err)
	}
	if restart, err := r.reload(); err != nil || restart != nil {
		t.Errorf("there again: %v %v", restart, err)
	}
}
