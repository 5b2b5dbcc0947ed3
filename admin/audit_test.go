package admin

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/proto"
)

// TestCallerIDs_Certificate checks that the audit log names who has proved with a certificate who
// it is, and not the certificate of somebody that was not verified.
func TestCallerIDs_Certificate(t *testing.T) {
	cert := testca.New(t, "root").Issue(t, testca.Spec{CN: "alice"}).Leaf
	id := proto.ID{Scheme: "x509", ID: "CN=alice"}
	for _, verified := range []bool{false, true} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/commands/reload", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		if verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
		}
		if got := callerIDs(r); slices.Contains(got, id) != verified {
			t.Errorf("verified: %t: %v", verified, got)
		}
	}
}
