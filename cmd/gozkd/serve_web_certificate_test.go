package main

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// A certificate is an identity of REST, if it has a role. Administrators of the admin commands have
// one.
func TestServe_WebByCertificate(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{"127.0.0.1"}}).Files(t)
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.forceHttps=true", "-o", "gozkd.web.roles=write=x509:CN=alice",
		"-o", "gozkd.admin.x509=CN=root",
		"-o", "ssl.quorum.keyStore.location="+files.Key, "-o", "ssl.quorum.trustStore.location="+files.CA)
	base := strings.TrimSuffix(p.ports.Admin, "/commands")
	alice, bob := ca.Issue(t, testca.Spec{CN: "alice"}), ca.Issue(t, testca.Spec{CN: "bob"})
	root := ca.Issue(t, testca.Spec{CN: "root"})
	nobody := &tls.Config{RootCAs: ca.Pool()}
	for _, c := range []struct {
		as           *tls.Config
		method, path string
		status       int
		want         string
	}{
		{alice.Client(""), http.MethodGet, "/identity/v2", 200, `{"scheme":"x509","id":"CN=alice"}`},
		{alice.Client(""), http.MethodPost, "/znodes/v2/?name=a", 201, `"path":"/a"`},
		{bob.Client(""), http.MethodGet, "/znodes/v2/a", 403, "x509:CN=bob has no role"},
		{root.Client(""), http.MethodGet, "/identity/v2", 200, `"role":"admin"`},
		{root.Client(""), http.MethodPost, "/ui/api/sessions/0x1/end", 404, "session"},
		{root.Client(""), http.MethodGet, "/commands/stat_reset", 200, "stat_reset"},
		{alice.Client(""), http.MethodPost, "/ui/api/sessions/0x1/end", 403, "role"},
		{alice.Client(""), http.MethodGet, "/commands/stat_reset", 401, "administrator"},
		{nobody, http.MethodGet, "/znodes/v2/a", 200, `"/a"`}, // anonymous, on this machine
		{nobody, http.MethodPost, "/znodes/v2/?name=b", 401, "role write"},
	} {
		if status, body := ask(t, c.as, c.method, base+c.path); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
}
