package admin_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/server"
)

// TestAdministrator_Certificate checks that only a verified certificate of an administrator
// authorizes, and that without it the reason names it.
func TestAdministrator_Certificate(t *testing.T) {
	s, ca := start(t, server.Config{}), testca.New(t, "ca")
	alice, bob := ca.Issue(t, testca.Spec{CN: "alice"}).Leaf, ca.Issue(t, testca.Spec{CN: "bob"}).Leaf
	verified := func(cert *x509.Certificate) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert, ca.Leaf}}}
	}
	isAlice := func(cert *x509.Certificate) bool { return cert.Subject.CommonName == "alice" }
	for _, c := range []struct {
		name  string
		is    func(*x509.Certificate) bool
		state *tls.ConnectionState
		want  int
	}{
		{"alice", isAlice, verified(alice), http.StatusOK},
		{"bob", isAlice, verified(bob), http.StatusUnauthorized},
		{"not verified", isAlice, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{alice}}, http.StatusUnauthorized},
		{"no certificate", isAlice, &tls.ConnectionState{}, http.StatusUnauthorized},
		{"no TLS", isAlice, nil, http.StatusUnauthorized},
		{"nobody is an administrator", nil, verified(alice), http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/commands/shed_connections", strings.NewReader(`{"percentage": 0}`))
			r.TLS = c.state
			w := httptest.NewRecorder()
			admin.New(s, admin.Options{Shed: true, Administrator: c.is}).ServeHTTP(w, r)
			named := strings.Contains(w.Body.String(), "the certificate of an administrator")
			if w.Code != c.want || named != (c.want != http.StatusOK && c.is != nil && c.state != nil) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
