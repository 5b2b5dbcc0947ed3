package admin

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/guesses"
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

// events is an audit.Sink.
type events []audit.Event

func (l *events) Record(e *audit.Event) { *l = append(*l, *e) }

// guarded returns a handler and its clock. Its superuser has the password test.
func guarded(t *testing.T, cfg server.Config) (*handler, *time.Time) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-token-for-everywhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
	h, now := New(newServer(t, cfg), Options{TokenFile: file, LocalTokenFile: file}).(*handler), time.Now()
	h.guesses = guesses.New(func() time.Time { return now })
	return h, &now
}

// ask sends a command that changes something.
func ask(t *testing.T, h http.Handler, from, authorization string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/commands/set_trace_mask?traceMask=1", nil)
	r.RemoteAddr = from + ":1"
	r.Header.Set("Authorization", authorization)
	for _, name := range headers {
		r.Header.Set(name, "203.0.113.9")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Wrong passwords and tokens are bounded per network, whatever a caller says about a proxy. They do
// not lock out others: neither those in other networks, nor programs on this machine.
func TestAuthorize_Guesses(t *testing.T) {
	for _, c := range []struct {
		right, wrong string
		status       int
	}{
		{"digest super:test", "digest super:guess", http.StatusForbidden},
		{"Bearer a-token-for-everywhere", "bearer a-token-for-nowhere-at-all", http.StatusUnauthorized},
	} {
		h, now := guarded(t, server.Config{})
		stranger, forwarded := "192.0.2.1", "X-Forwarded-For"
		for i := range 10 {
			if w := ask(t, h, stranger, c.wrong+strconv.Itoa(i), forwarded); w.Code != c.status {
				t.Fatalf("guess %d: status %d, want %d", i, w.Code, c.status)
			}
		}
		for _, guess := range []string{c.wrong, c.right} {
			w := ask(t, h, stranger, guess, forwarded)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "10" {
				t.Errorf("%s: status %d after ten wrong guesses, Retry-After %q", guess, w.Code, w.Header().Get("Retry-After"))
			}
		}
		for range 20 { // of a proxy on this machine
			ask(t, h, "127.0.0.1", strings.Replace(c.wrong, "super", "eve", 1), forwarded)
		}
		for _, from := range []string{"192.0.2.2", "127.0.0.1"} {
			if w := ask(t, h, from, c.right); w.Code != http.StatusOK {
				t.Errorf("%s from %s: status %d", c.right, from, w.Code)
			}
		}
		*now = now.Add(11 * time.Second)
		if w := ask(t, h, stranger, c.right); w.Code != http.StatusOK {
			t.Errorf("%s: status %d after a while", c.right, w.Code)
		}
	}
}

// Refused commands, with and without credentials, do not fill the audit log: a line counts those
// before it that have none. Commands that are carried out always have one.
func TestAudit_Refused(t *testing.T) {
	var log events
	h, _ := guarded(t, server.Config{Audit: &log})
	for range 100 {
		ask(t, h, "192.0.2.1", "")
		ask(t, h, "192.0.2.1", "digest super:guess")
	}
	if len(log) != 10 {
		t.Errorf("%d events", len(log))
	}
	log = nil
	for range 30 {
		ask(t, h, "192.0.2.2", "digest super:test")
	}
	ask(t, h, "192.0.2.2", "ip x")
	if len(log) != 31 || log[0].Result != audit.Invoked || log[30].Result != audit.Failure || log[30].Count != 190 {
		t.Errorf("%d events, %+v", len(log), log)
	}
}
