package tlsconf

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

func TestProtocol_Versions(t *testing.T) {
	const v12, v13 = tls.VersionTLS12, tls.VersionTLS13
	for _, c := range []struct {
		protocol string
		enabled  []string
		min, max uint16
		err      string
	}{
		{"", nil, v12, v13, ""},
		{"TLSv1.2", nil, v12, v12, ""},
		{"TLSv1.3", nil, v13, v13, ""},
		{"TLSv1.3", []string{"TLSv1.2", "TLSv1.3"}, v12, v13, ""},
		{"", []string{"TLSv1.3"}, v13, v13, ""},
		{"TLSv1.1", nil, 0, 0, `ssl.protocol has "TLSv1.1"`},
		{"", []string{"TLSv1.2", "TLSv1"}, 0, 0, `ssl.enabledProtocols has "TLSv1"`},
		{"", []string{"SSLv2Hello"}, 0, 0, "ssl.enabledProtocols"},
	} {
		p, err := (&Options{Prefix: "ssl.", Protocol: c.protocol, EnabledProtocols: c.enabled}).protocol()
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || p.min != c.min || p.max != c.max:
			t.Errorf("%+v: %x to %x, %v", c, p.min, p.max, err)
		}
	}
}

func TestCipherSuites_Narrow(t *testing.T) {
	const gcm, newer = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"
	for _, c := range []struct {
		names    []string
		min, max uint16
		suites   int
		notes    []string
		err      bool
	}{
		{names: []string{gcm, newer}, min: tls.VersionTLS12, max: tls.VersionTLS13, suites: 1, notes: []string{"all cipher suites of TLS 1.3"}},
		{names: []string{gcm}, min: tls.VersionTLS12, max: tls.VersionTLS12, suites: 1},
		{names: []string{newer, "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}, min: tls.VersionTLS13, max: tls.VersionTLS13},
		{names: []string{gcm, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"}, min: tls.VersionTLS12, max: tls.VersionTLS12, suites: 1, notes: []string{"not supported"}},
		{names: []string{gcm, "TLS_RSA_WITH_AES_128_CBC_SHA"}, min: tls.VersionTLS12, max: tls.VersionTLS12, suites: 2, notes: []string{"weak"}},
		{names: []string{"TLS_RSA_WITH_RC4_128_SHA", "TLS_NO_SUCH"}, err: true},
	} {
		p, err := (&Options{Prefix: "ssl.", CipherSuites: c.names}).protocol()
		if c.err {
			if err == nil || !strings.Contains(err.Error(), "ssl.ciphersuites") {
				t.Errorf("%v: %v", c.names, err)
			}
			continue
		}
		noted := slices.EqualFunc(p.notes, c.notes, strings.Contains)
		if err != nil || p.min != c.min || p.max != c.max || len(p.suites) != c.suites || !noted {
			t.Errorf("%v: %+v, %v", c.names, p, err)
		}
	}
}

func TestOptions_Incomplete(t *testing.T) {
	key, trust := Store{Location: "key.pem"}, Store{Location: "trust.pem"}
	for want, o := range map[string]Options{
		"ssl.keyStore.location is not set":                     {TrustStore: trust},
		"ssl.trustStore.location is not set":                   {KeyStore: key},
		"or set ssl.clientAuth=none":                           {KeyStore: key, ClientAuth: "want"},
		"ssl.clientAuth is \"yes\"":                            {KeyStore: key, TrustStore: trust, ClientAuth: "yes"},
		"ssl.ocsp=true is not supported":                       {KeyStore: key, TrustStore: trust, OCSP: true},
		"ssl.crl=true, but gozkd.ssl.crlLocation is not set":   {KeyStore: key, TrustStore: trust, CRL: true},
		"ssl.crl=true, but ssl.trustStore.location is not set": {KeyStore: key, ClientAuth: None, CRL: true, CRLLocation: "x"},
		"ssl.keyStore.type is \"PKCS11\"":                      {KeyStore: Store{Location: "x", Type: "PKCS11"}, TrustStore: trust},
	} {
		o.Prefix = "ssl."
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (&Options{Role: Both, KeyStore: key, ClientAuth: None}).Check(); err == nil {
		t.Error("a member would trust every authority of the system")
	}
	if err := (&Options{Role: Client}).Check(); err != nil {
		t.Errorf("a client needs no store: %v", err)
	}
}

func TestClientAuth_EachValue(t *testing.T) {
	ca, other := testca.New(t, "root"), testca.New(t, "another root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
	with, foreign := ca.Issue(t, testca.Spec{CN: "alice"}).Client("zk"), other.Issue(t, testca.Spec{}).Client("zk")
	foreign.RootCAs = ca.Pool()
	// NB: otherwise crypto/tls sends no certificate, as the server does not name its authority.
	cert := foreign.Certificates[0]
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	without := with.Clone()
	without.Certificates = nil
	for _, c := range []struct {
		auth                   string
		with, without, foreign bool // accepted
	}{
		{"", true, false, false}, {"NEED", true, false, false}, {"Want", true, true, false}, {"none", true, true, true},
	} {
		o := options(Server, files)
		o.ClientAuth = c.auth
		s := load(t, o)
		for name, side := range map[string]struct {
			cfg  *tls.Config
			want bool
		}{"with": {with, c.with}, "without": {without, c.without}, "foreign": {foreign, c.foreign}} {
			if o := shake(s.Server(), side.cfg); (o.serverErr == nil) != side.want {
				t.Errorf("%q, %s: %v", c.auth, name, o.serverErr)
			} else if known := len(o.server.VerifiedChains) > 0; side.want && known != (name == "with" && c.auth != "none") {
				t.Errorf("%q, %s: the caller is known: %v", c.auth, name, known)
			}
		}
	}
}
