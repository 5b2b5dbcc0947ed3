package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

// A session over TLS is as one without, on each kind of port and of connection, and in each
// version.
func TestTLS_Sessions(t *testing.T) {
	c := newCerts(t)
	versions := map[string]*tls.Config{"plain": nil}
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		versions[name] = c.client(t, "alice")
		versions[name].MinVersion, versions[name].MaxVersion = version, version
	}
	cfg := server.Config{PortUnification: true, TLS: c.server(t, tls.RequireAndVerifyClientCert)}
	s := startTLS(t, cfg, cfg.TLS)
	for name, with := range versions {
		want := "ip:127.0.0.1 x509:CN=alice"
		if with == nil {
			want = "ip:127.0.0.1"
		}
		check := func(t *testing.T, s *server.Server, r *raw) {
			t.Helper()
			r.exercise()
			if !slices.ContainsFunc(s.Facts().Connections(), func(c server.Connection) bool { return c.Session != 0 && c.TLS == (with != nil) }) {
				t.Errorf("%+v", s.Facts().Connections())
			}
			if got := r.whoAmI(); got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
			r.end()
		}
		t.Run(name+" on a socket", func(t *testing.T) {
			check(t, s, dialTLS(t, s.Addr(), with))
			if with != nil {
				check(t, s, dialTLS(t, s.SecureAddr(), with))
			}
		})
		t.Run(name+" in memory", func(t *testing.T) {
			tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
				want = strings.Replace(want, "127.0.0.1", "client", 1)
				check(t, s, dial("client", "zk:2181", with))
				if with != nil {
					check(t, s, dial("client", "zk:2281", with))
				}
			})
		})
	}
}

// Four-letter words are answered inside TLS, and without it on a unified port, where four bytes are
// enough.
func TestTLS_Words(t *testing.T) {
	c := newCerts(t)
	cfg := server.Config{PortUnification: true, TLS: c.server(t, tls.NoClientCert), Words: []string{"*"}}
	s := startTLS(t, cfg, cfg.TLS)
	for name, r := range map[string]*raw{
		"unified, plain": dialTLS(t, s.Addr(), nil), "unified": dialTLS(t, s.Addr(), c.client(t, "")), "secure": dialTLS(t, s.SecureAddr(), c.client(t, "")),
	} {
		if _, err := io.WriteString(r.nc, "ruok"); err != nil {
			t.Fatal(name, err)
		}
		if answer, err := io.ReadAll(r.nc); string(answer) != "imok" || err != nil {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
	r := dialTLS(t, s.SecureAddr(), c.client(t, ""))
	if _, err := io.WriteString(r.nc, "mntr"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(r.nc)
	if !bytes.Contains(answer, []byte("zk_non_mtls_local_conn_count\t1\n")) || err != nil {
		t.Errorf("mntr: %q, %v", answer, err)
	}
	_, port, _ := net.SplitHostPort(s.SecureAddr().String())
	if !slices.Contains(s.Facts().Settings(), server.Setting{Key: "secureClientPort", Value: port}) {
		t.Errorf("conf: %v", s.Facts().Settings())
	}
}

// Who has no right to a connection gets none, the reason is logged, and all is counted.
func TestTLS_Refuses(t *testing.T) {
	c := newCerts(t)
	expired := c.ca.Issue(t, testca.Spec{CN: "old", NotAfter: testca.Begin.Add(time.Hour)}).Client("zk")
	foreign := c.other.Issue(t, testca.Spec{CN: "mallory"}).Client("zk")
	foreign.RootCAs = c.ca.Pool()
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign.Certificates[0], nil }
	old := c.client(t, "alice")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	distrustful := c.client(t, "alice")
	distrustful.RootCAs = c.other.Pool()
	cases := []struct {
		name, bytes, reason string
		with                *tls.Config
	}{
		{name: "no certificate", with: c.client(t, ""), reason: "no certificate"},
		{name: "an expired one", with: expired, reason: "expired"},
		{name: "one of another authority", with: foreign, reason: "unknown authority"},
		{name: "TLS 1.1", with: old, reason: "version"},
		{name: "a client that trusts others", with: distrustful, reason: "certificate"},
		{name: "a plain client", bytes: "\x00\x00\x00\x2c\x00", reason: "not TLS"},
		{name: "a word", bytes: "ruok", reason: "not TLS"},
		{name: "garbage after the first bytes", bytes: "\x16\x03\x01\x00\x10garbagegarbagegarbage", reason: "TLS handshake failed"},
		{name: "a long hello", bytes: "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("x", 17_000), reason: "exceeds maximum"},
	}
	var lines logbuf.Buffer
	cfg := ticks
	cfg.Logger, cfg.TLS = hclog.New(&hclog.LoggerOptions{Output: &lines}), c.server(t, tls.RequireAndVerifyClientCert)
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
		good := dial("client", "zk:2281", c.client(t, "alice"))
		good.connect(3_600_000, 0, nil)
		for i, tc := range cases {
			r := dial("client", "zk:2281", tc.with)
			before := lines.String()
			go func() { // ends when it is read, or with the pipe
				b := tc.bytes
				if b == "" {
					b = string((&proto.ConnectRequest{TimeoutMs: 5000}).Append([]byte{0, 0, 0, 44}))
				}
				_, _ = io.WriteString(r.nc, b)
			}()
			if b := r.tryRecv(); b != nil {
				t.Errorf("%s: answered with %x", tc.name, b)
			}
			_ = r.nc.Close()
			synctest.Wait()
			if line := strings.TrimPrefix(lines.String(), before); !strings.Contains(line, tc.reason) {
				t.Errorf("%s: logged %q, want %q", tc.name, line, tc.reason)
			}
			n := counted(s)
			if want := int64(i + 1); n["unsuccessful_handshake"] != want || n["auth_failed_count"] != want || n["outstanding_tls_handshake"] != 0 {
				t.Errorf("%s: counted %d, %d and %d, want %d, %d and 0", tc.name,
					n["unsuccessful_handshake"], n["auth_failed_count"], n["outstanding_tls_handshake"], want, want)
			}
		}
		good.ping()
	})
}

// The handshakes under way are bounded, and one host can't take all places. What waits for nobody
// is closed in time.
func TestTLS_HandshakesShareTheirPlaces(t *testing.T) {
	c := newCerts(t)
	cfg := ticks
	cfg.TLS, cfg.HandshakeLimit, cfg.MaxClientConns = c.server(t, tls.RequireAndVerifyClientCert), 10, -1
	tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
		half := func(from string) {
			r := dial(from, "zk:2281", nil)
			if _, err := r.nc.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect := func(when string, outstanding, exceeded, failed int64) {
			t.Helper()
			n := counted(s)
			if n["outstanding_tls_handshake"] != outstanding || n["tls_handshake_exceeded"] != exceeded || n["unsuccessful_handshake"] != failed {
				t.Errorf("%s: %d under way, %d too many, %d failed; want %d, %d, %d", when,
					n["outstanding_tls_handshake"], n["tls_handshake_exceeded"], n["unsuccessful_handshake"], outstanding, exceeded, failed)
			}
		}
		for range 12 {
			half("mallory")
		}
		expect("mallory alone", 10, 2, 0)
		for range 100 { // silence takes no place
			dial("silent", "zk:2281", nil)
		}
		r := dial("client", "zk:2281", c.client(t, "alice"))
		r.connect(3_600_000, 0, nil)
		expect("a client came", 9, 3, 0)
		for range 7 {
			half("eve")
		}
		expect("eve came", 10, 3+6, 0)
		time.Sleep(time.Minute)
		expect("a minute later", 0, 9, 10)
		if n := s.Facts().Stats().Connections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		r.ping()
	})
}

// A certificate that nobody has verified is no identity, nor is it one in a session that is
// resumed.
func TestTLS_UnverifiedCertificates(t *testing.T) {
	c := newCerts(t)
	for _, auth := range []tls.ClientAuthType{tls.RequestClientCert, tls.RequireAnyClientCert} {
		cfg := server.Config{Auth: server.Authentication{X509: server.X509{SuperUser: "CN=alice"}}}
		s := startTLS(t, cfg, c.server(t, auth))
		with := c.client(t, "alice")
		foreign := &c.other.Issue(t, testca.Spec{CN: "alice"}).Client("zk").Certificates[0]
		with.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return foreign, nil } // whatever the server trusts
		with.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			r := dialTLS(t, s.SecureAddr(), with)
			r.connect(10_000, 0, nil)
			if got := r.whoAmI(); got != "ip:127.0.0.1" {
				t.Errorf("%v: it is %s", auth, got)
			}
			if resumed := r.nc.(*tls.Conn).ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("%v: connection %d resumed: %v", auth, i, resumed)
			}
			if h, _ := r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "x509"}); h.Err != proto.ErrAuthFailed {
				t.Errorf("%v: auth is answered with %v", auth, h.Err)
			}
		}
	}
}

// A client that resumes a TLS session keeps its identity.
func TestTLS_ResumptionKeepsTheIdentity(t *testing.T) {
	c := newCerts(t)
	s := startTLS(t, server.Config{}, c.server(t, tls.VerifyClientCertIfGiven))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		with := c.client(t, "alice")
		with.MaxVersion = version
		with.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 3 {
			r := dialTLS(t, s.SecureAddr(), with)
			r.connect(10_000, 0, nil)
			if got := r.whoAmI(); got != "ip:127.0.0.1 x509:CN=alice" {
				t.Errorf("connection %d is %s", i, got)
			}
			if resumed := r.nc.(*tls.Conn).ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("version %x, connection %d resumed: %v", version, i, resumed)
			}
			r.end()
		}
	}
}

// A certificate's identity is there without a request, fails closed, and may be the superuser.
func TestTLS_Identities(t *testing.T) {
	c := newCerts(t)
	spec := testca.Spec{CN: "alice", Hosts: []string{"a.example", "spiffe://x/alice", "spiffe://y/alice"}, Emails: []string{"alice@example.com"}}
	with := c.ca.Issue(t, spec).Client("zk")
	for _, tc := range []struct {
		id, super, want string
	}{
		{"", "", "ip:127.0.0.1 x509:CN=alice"},
		{"subject", "CN=alice", "ip:127.0.0.1 super: x509:CN=alice"},
		{"cn", "CN=alice", "ip:127.0.0.1 x509:alice"},
		{"san:dns", "", "ip:127.0.0.1 x509:a.example"},
		{"san:email", "alice@example.com", "ip:127.0.0.1 super: x509:alice@example.com"},
		{"san:uri", "", "ip:127.0.0.1"}, // there are two
	} {
		cfg := server.Config{Auth: server.Authentication{X509: server.X509{SuperUser: tc.super, TextIDs: tc.id != ""}, ACLSchemes: []string{"x509"}}}
		var err error
		if cfg.Auth.X509.ID, err = identity.CertificateIDOf(tc.id); err != nil {
			t.Fatal(err)
		}
		s := startTLS(t, cfg, c.server(t, tls.VerifyClientCertIfGiven))
		r := dialTLS(t, s.SecureAddr(), with)
		r.connect(10_000, 0, nil)
		if got := r.whoAmI(); got != tc.want {
			t.Errorf("%q: it is %s, want %s", tc.id, got, tc.want)
		}
		want := proto.OK
		_, id, found := strings.Cut(tc.want, " x509:")
		if !found {
			want = proto.ErrAuthFailed
		}
		// An ACL can name it.
		acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "x509", ID: id}}}
		if h, _ := r.call(1, proto.OpCreate, rawBody((&proto.CreateRequest{Path: "/a", ACL: acl}).Append(nil, proto.OpCreate))); h.Err != proto.OK {
			t.Errorf("%q: an ACL for %q is answered with %v", tc.id, id, h.Err)
		}
		if h, _ := r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "x509"}); h.Err != want {
			t.Errorf("%q: auth is answered with %v, want %v", tc.id, h.Err, want)
		}
		for name, other := range map[string]*raw{"no certificate": dialTLS(t, s.SecureAddr(), c.client(t, "")), "no TLS": dialTLS(t, s.Addr(), nil)} {
			other.connect(10_000, 0, nil)
			if got := other.whoAmI(); got != "ip:127.0.0.1" {
				t.Errorf("%s: it is %s", name, got)
			}
			if h, _ := other.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "x509"}); h.Err != proto.ErrAuthFailed {
				t.Errorf("%s: auth is answered with %v", name, h.Err)
			}
			if b := other.tryRecv(); b != nil {
				t.Errorf("%s: %x after the refusal", name, b)
			}
		}
	}
	if _, err := identity.CertificateIDOf("san:uuid"); err == nil {
		t.Error("an unknown kind is accepted")
	}
}

// Clients that neither read nor say goodbye do not delay the end of the server.
func TestTLS_CloseDoesNotWait(t *testing.T) {
	c := newCerts(t)
	cfg := server.Config{PortUnification: true, MaxClientConns: -1, TLS: c.server(t, tls.NoClientCert)}
	stop := func(t *testing.T, s *server.Server, dial func() *raw) {
		for i := range 20 {
			r := dial()
			r.connect(60_000, 0, nil)
			if i%2 == 0 {
				r.call(1, proto.OpCreate, create{path: fmt.Sprintf("/%p", r)})
				r.call(2, proto.OpSetData, &proto.SetDataRequest{Path: fmt.Sprintf("/%p", r), Data: make([]byte, 900_000), Version: -1})
				for xid := range int32(40) {
					r.request(3+xid, proto.OpGetData, &proto.PathWatchRequest{Path: fmt.Sprintf("/%p", r)})
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("sockets", func(t *testing.T) {
		s := startTLS(t, cfg, cfg.TLS)
		stop(t, s, func() *raw { return dialTLS(t, s.SecureAddr(), c.client(t, "")) })
	})
	t.Run("memory", func(t *testing.T) {
		tlsBubble(t, cfg, func(t *testing.T, s *server.Server, dial func(string, string, *tls.Config) *raw) {
			begin := time.Now()
			stop(t, s, func() *raw { return dial("client", "zk:2281", c.client(t, "")) })
			if took := time.Since(begin); took > 2*time.Second { // of the bubble's clock; each close_notify may take 1 s
				t.Errorf("the end took %v", took)
			}
		})
	})
}

// Reload changes what new connections are shown, and what ports take. Connections stay.
func TestTLS_Reload(t *testing.T) {
	c, next := newCerts(t), newCerts(t)
	s := startTLS(t, server.Config{}, c.server(t, tls.RequireAndVerifyClientCert))
	old := dialTLS(t, s.SecureAddr(), c.client(t, "alice"))
	old.connect(10_000, 0, nil)
	cfg := server.ReloadedWith(s, func(cfg *server.Config) {
		cfg.TLS, cfg.PortUnification = next.server(t, tls.RequireAndVerifyClientCert), true
		cfg.Auth.X509.SuperUser = "CN=bob"
	})
	if restart, err := s.Reload(cfg); len(restart) > 0 || err != nil {
		t.Fatal(restart, err)
	}
	for _, address := range []net.Addr{s.Addr(), s.SecureAddr()} {
		r := dialTLS(t, address, next.client(t, "bob"))
		r.connect(10_000, 0, nil)
		if got := r.whoAmI(); got != "ip:127.0.0.1 super: x509:CN=bob" {
			t.Errorf("it is %s", got)
		}
	}
	if got := old.whoAmI(); got != "ip:127.0.0.1 x509:CN=alice" {
		t.Errorf("the old connection is %s", got)
	}
	if _, err := s.Reload(server.ReloadedWith(s, func(cfg *server.Config) { cfg.TLS = nil })); err == nil {
		t.Error("ports for TLS without TLS are accepted")
	}
}

// Settings that cannot work are refused.
func TestNew_TLSSettings(t *testing.T) {
	c := newCerts(t)
	good := c.server(t, tls.NoClientCert)
	for want, cfg := range map[string]server.Config{
		"TLS is not set":    {PortUnification: true},
		"need TLS":          {SecureListen: ":0"},
		"no certificate":    {SecureListen: ":0", TLS: &tls.Config{}},
		"choose one":        {SecureListen: ":0", SecureListener: closedListener{}, TLS: good},
		`SecureListen is "`: {SecureListen: "nonsense", TLS: good},
	} {
		if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s, err := server.New(server.Config{TLS: good, InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Start(context.Background()), s.Close()); err != nil {
		t.Fatal(err)
	}
}

type closedListener struct{}

func (closedListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closedListener) Close() error              { return nil }
func (closedListener) Addr() net.Addr            { return memnet.Addr("zk:1") }
