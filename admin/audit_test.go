package admin

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

// TestCallerIDs_Certificate checks that the audit log names who has proved with a certificate who
// it is, and not the certificate of somebody that was not verified.
func TestCallerIDs_Certificate(t *testing.T) {
	cert := testca.New(t, "root").Issue(t, testca.Spec{CN: "alice"}).Leaf
	id := proto.ID{Scheme: "x509", ID: "CN=alice"}
	h := &handler{server: newServer(t, server.Config{})}
	for _, verified := range []bool{false, true} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/commands/reload", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		if verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
		}
		if got := h.callerIDs(r); slices.Contains(got, id) != verified {
			t.Errorf("verified: %t: %v", verified, got)
		}
	}
}

// TestCallerIDs_LongName: anybody can send names, and must not fill the audit log with them.
func TestCallerIDs_LongName(t *testing.T) {
	h := &handler{server: newServer(t, server.Config{})}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/commands/srst", nil)
	r.Header.Set("Authorization", "digest "+strings.Repeat("<", 60_000)+":x")
	for _, id := range h.callerIDs(r) {
		if len(id.ID) > maxAuditUser+len("…") {
			t.Errorf("a name of %d bytes", len(id.ID))
		}
	}
}

func newServer(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The name is that of clients with the same certificate: it may have no subject.
func TestCallerIDs_ConfiguredName(t *testing.T) {
	var cfg server.Config
	var err error
	if cfg.Auth.X509.ID, err = identity.CertificateIDOf("san:uri"); err != nil {
		t.Fatal(err)
	}
	h := &handler{server: newServer(t, cfg)}
	cert := testca.New(t, "root").Issue(t, testca.Spec{RawSubject: []byte{0x30, 0}, Hosts: []string{"spiffe://example/admin"}}).Leaf
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/commands/reload", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	want := []proto.ID{{Scheme: "x509", ID: "spiffe://example/admin"}, {Scheme: "ip", ID: "192.0.2.1"}}
	if got := h.callerIDs(r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
