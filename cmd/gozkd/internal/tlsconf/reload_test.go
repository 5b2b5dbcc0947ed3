package tlsconf

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testca"
)

// lines is a log that tests read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// run starts Run in a bubble. It ends with the test.
func run(t *testing.T, s *Source) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	// Stopped and awaited by the cleanup.
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// later lets Run look at the files at least once.
func later() {
	time.Sleep(2 * interval)
	synctest.Wait()
}

func TestRun_ReplacedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testca.New(t, "root")
		f := ca.Issue(t, testca.Spec{CN: "first", Hosts: []string{"zk"}}).Files(t)
		log := &lines{}
		s, err := Load(options(Server, f), hclog.New(&hclog.LoggerOptions{Output: log}))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		client, server := ca.Issue(t, testca.Spec{}).Client("zk"), s.Server()
		serves := func(want string) {
			t.Helper()
			if o := shake(server, client); o.serverErr != nil || o.client.PeerCertificates[0].Subject.CommonName != want {
				t.Errorf("want %s: %v, %v", want, o.serverErr, o.clientErr)
			}
		}
		serves("first")

		second := ca.Issue(t, testca.Spec{CN: "second", Hosts: []string{"zk"}})
		testca.WriteFile(t, f.Key, second.KeyPEM(t), second.CertPEM())
		later()
		serves("second")

		// Half a file, a key that belongs to another certificate, and no file at all.
		third := ca.Issue(t, testca.Spec{CN: "third", Hosts: []string{"zk"}})
		testca.WriteFile(t, f.Key, second.KeyPEM(t), third.CertPEM())
		later()
		serves("second")
		later()
		if st := s.Stats(); st.Failures != 1 || st.LastError == nil || st.Reloads != 1 {
			t.Errorf("%+v", st)
		}
		if err := os.Remove(f.Key); err != nil {
			t.Fatal(err)
		}
		later()
		serves("second")
		later()
		if st := s.Stats(); st.Failures != 2 {
			t.Errorf("%+v", st)
		}
		if n := strings.Count(log.String(), "the previous content stays in use"); n != 2 {
			t.Errorf("%d lines about 2 failures: %s", n, log)
		}
		testca.WriteFile(t, f.Key, second.KeyPEM(t), second.CertPEM())
		later()
		if st := s.Stats(); st.LastError != nil || st.Reloads != 1 {
			t.Errorf("back to the content in use: %+v", st)
		}
		testca.WriteFile(t, f.Key, third.KeyPEM(t), third.CertPEM())
		later()
		serves("third")
	})
}

// TestCheck_WhileClientsConnect: no handshake fails because of a certificate that is being
// replaced.
func TestCheck_WhileClientsConnect(t *testing.T) {
	ca := testca.New(t, "root")
	f := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
	s := load(t, options(Server, f))
	server := s.Server()
	var done atomic.Bool
	var clients sync.WaitGroup
	for range 3 {
		client := ca.Issue(t, testca.Spec{}).Client("zk")
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		clients.Go(func() {
			for !done.Load() {
				if o := shake(server, client); o.serverErr != nil || o.clientErr != nil {
					t.Errorf("%v, %v", o.serverErr, o.clientErr)
					return
				}
			}
		})
	}
	for range 8 {
		next := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}})
		for _, content := range [][]byte{next.CertPEM(), append(next.KeyPEM(t), next.CertPEM()...)} { // the first is half of it
			testca.WriteFile(t, f.Key, content)
			_ = s.Check()
		}
	}
	done.Store(true)
	clients.Wait()
	if st := s.Stats(); st.Reloads != 8 || st.LastError != nil {
		t.Errorf("%+v", st)
	}
}

// TestRun_TrustStoreReplaced: sessions keep the identity of the client when they are resumed, and
// none is resumed after a change of the files, such as the removal of its authority.
func TestRun_TrustStoreReplaced(t *testing.T) {
	for name, version := range map[string]string{"TLS 1.2": "TLSv1.2", "TLS 1.3": "TLSv1.3"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, other := testca.New(t, "root"), testca.New(t, "other")
				f := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
				testca.WriteFile(t, f.CA, ca.CertPEM(), other.CertPEM())
				o := options(Server, f)
				o.Protocol = version
				s := load(t, o)
				run(t, s)
				client := other.Issue(t, testca.Spec{CN: "alice"}).Client("zk")
				client.RootCAs = ca.Pool()
				client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
				server := s.Server()
				for i := range 3 {
					r := shake(server, client)
					if r.serverErr != nil || r.server.DidResume != (i > 0) {
						t.Fatalf("%v, resumed: %v", r.serverErr, r.server.DidResume)
					}
					if got := r.server.VerifiedChains[0][0].Subject.CommonName; got != "alice" {
						t.Errorf("the identity is %q", got)
					}
				}
				testca.WriteFile(t, f.CA, other.CertPEM(), ca.CertPEM())
				later()
				if r := shake(server, client); r.serverErr != nil || r.server.DidResume {
					t.Errorf("a session was resumed under other content: %v", r.serverErr)
				}
				testca.WriteFile(t, f.CA, ca.CertPEM())
				later()
				if r := shake(server, client); r.serverErr == nil {
					t.Errorf("accepted after the authority was removed; resumed: %v", r.server.DidResume)
				}
			})
		})
	}
}

func TestRun_TicketsSurviveADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testca.New(t, "root")
		s := load(t, options(Server, ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)))
		client := ca.Issue(t, testca.Spec{}).Client("zk")
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		shake(s.Server(), client)
		for rotations, want := range []bool{true, true, false} {
			for range rotations {
				time.Sleep(ticketLife)
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
			}
			if r := shake(s.Server(), client); r.serverErr != nil || r.server.DidResume != want {
				t.Errorf("after %d rotations: %v, resumed: %v", rotations, r.serverErr, r.server.DidResume)
			}
		}
	})
}

func TestRun_WarnsOfExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, log := testca.New(t, "root"), &lines{}
		f := ca.Issue(t, testca.Spec{NotAfter: time.Now().Add(32 * 24 * time.Hour)}).Files(t)
		s, err := Load(options(Server, f), hclog.New(&hclog.LoggerOptions{Output: log}))
		if err != nil {
			t.Fatal(err)
		}
		for day := range 34 {
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Count(log.String(), "replace it"), max(0, day-2); got != want {
				t.Errorf("day %d: %d lines, want %d", day, got, want)
			}
			time.Sleep(24 * time.Hour)
		}
		if !strings.Contains(log.String(), "has expired") {
			t.Errorf("%s", log)
		}
	})
}

// A certificate that lives for years is worth a warning for 30 days, and a critical one for 7. One
// that lives for weeks or hours, and is renewed when two thirds of that are over, has other limits.
func TestExpiry(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		life, left time.Duration
		want       string // the beginning and the end of the dated sentence; "": no warning
	}{
		{year, 30*day + time.Minute, ""},
		{year, 30*day - time.Minute, "ssl.keyStore.location: FILE: the certificate of secureClientPort 2281 expires in 30.0 days, at "},
		{year, 7*day + time.Minute, "ssl.keyStore.location: FILE: the certificate of secureClientPort 2281 expires in 7.0 days, at "},
		{year, 7*day - time.Minute, "critical: ssl.keyStore.location: FILE: the certificate of secureClientPort 2281 expires in 7.0 days, at "},
		{year, -time.Minute, "critical: ssl.keyStore.location: FILE: the certificate of secureClientPort 2281 has expired at "},
		{90 * day, 30*day + time.Minute, ""},
		{90 * day, 30*day - time.Minute, "ssl."},
		{day, 8*time.Hour + time.Minute, ""},
		{day, 8*time.Hour - time.Minute, "ssl."},
		{day, 2*time.Hour + time.Minute, "ssl."},
		{day, 2*time.Hour - time.Minute, "critical: ssl."},
	} {
		leaf := &x509.Certificate{NotAfter: now.Add(c.left), NotBefore: now.Add(c.left - c.life)}
		o := Options{Prefix: "ssl.", KeyStore: Store{Location: "FILE"}, Ports: "secureClientPort 2281"}
		got := (&content{options: o, cert: &tls.Certificate{Leaf: leaf}}).expiry(now)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || got != "" && !strings.HasSuffix(got, ": replace it; a restart is not needed") {
			t.Errorf("%v of %v left: %q, want %q", c.left, c.life, got, c.want)
		}
	}
}

// Authorities are looked at as well: those whose certificates are sent, and those that are trusted,
// except if another of the same name ends later, or if they ended long ago. Of several certificates
// the first that ends is named.
func TestExpiry_Authorities(t *testing.T) {
	const day = 24 * time.Hour
	sub := testca.New(t, "root").Sub(t, "sub")
	now := sub.Leaf.NotAfter.Add(-time.Minute)
	authority := func(name string, left time.Duration) *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, RawSubject: []byte(name), NotBefore: now.Add(-365 * day), NotAfter: now.Add(left),
		}
	}
	leaf := func(left time.Duration) *tls.Certificate {
		return &tls.Certificate{Leaf: authority("zk", left)}
	}
	sent := leaf(300 * day)
	sent.Certificate = sub.Issue(t, testca.Spec{CN: "zk"}).Certificate.Certificate
	for want, c := range map[string]*content{
		"":  {cert: leaf(300 * day), trusted: []*x509.Certificate{authority("a", 31*day), authority("b", -31*day)}},
		" ": {cert: leaf(300 * day), trusted: []*x509.Certificate{authority("a", 29*day), authority("a", 300*day)}},
		"ssl.trustStore.location: TRUST: the certificate of the authority CN=a, which is trusted at PORT, expires in 29.0 days": {
			cert: leaf(29*day + time.Minute), trusted: []*x509.Certificate{authority("b", 300*day), authority("a", 29*day)},
		},
		"ssl.keyStore.location: KEY: the certificate of PORT expires in 29.0 days": {
			cert: leaf(29 * day), trusted: []*x509.Certificate{authority("b", 30*day-time.Minute), authority("a", 29*day+time.Hour)},
		},
		"critical: ssl.trustStore.location: TRUST: the certificate of the authority CN=a, which is trusted at PORT, has expired at ": {
			trusted: []*x509.Certificate{authority("a", -day)},
		},
		"critical: ssl.keyStore.location: KEY: the certificate of the authority CN=sub, which is sent at PORT, expires in 0.0 days": {
			cert: sent, trusted: []*x509.Certificate{authority("a", 6*day)},
		},
	} {
		c.options = Options{Prefix: "ssl.", KeyStore: Store{Location: "KEY"}, TrustStore: Store{Location: "TRUST"}, Ports: "PORT"}
		got := c.expiry(now)
		if want = strings.TrimSpace(want); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReload_KeepsTheOldAfterAnError(t *testing.T) {
	ca := testca.New(t, "root")
	good := options(Server, ca.Issue(t, testca.Spec{CN: "first", Hosts: []string{"zk"}}).Files(t))
	s := load(t, good)
	bad := good
	bad.KeyStore.Location = filepath.Join(t.TempDir(), "missing.jks")
	if err := s.replace(bad); err == nil || !strings.Contains(err.Error(), "ssl.keyStore.location") {
		t.Errorf("%v", err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	next := options(Server, ca.Issue(t, testca.Spec{CN: "second", Hosts: []string{"zk"}}).Files(t))
	next.ClientAuth = None
	if err := s.replace(next); err != nil {
		t.Fatal(err)
	}
	client := ca.Issue(t, testca.Spec{}).Client("zk")
	client.Certificates = nil
	if o := shake(s.Server(), client); o.serverErr != nil || o.client.PeerCertificates[0].Subject.CommonName != "second" {
		t.Errorf("%v", o.serverErr)
	}
}

// TestSource_NoSecretInTheLog plants passwords and looks for them in all that is said.
func TestSource_NoSecretInTheLog(t *testing.T) {
	log := &lines{}
	o := Options{Prefix: "ssl.", ClientAuth: None, KeyStore: Store{Location: golden("keytool.jks"), Password: password}}
	s, err := Load(o, hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace}))
	if err != nil {
		t.Fatal(err)
	}
	o.KeyStore.Password = "planted"
	err = s.replace(o)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, secret := range []string{password, "planted"} {
		if strings.Contains(log.String()+err.Error(), secret) {
			t.Errorf("%s is shown: %s%v", secret, log, err)
		}
	}
}

// A certificate that has expired, is not valid yet, or is for another server does not replace a
// better one, neither when the file changes nor by a reload. It is taken over when it is no longer
// worse, because its time has come or that of the one in use has.
func TestRun_WorseCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, now := testca.New(t, "root"), time.Now()
		spec := func(cn string, from, until time.Duration) testca.Spec {
			return testca.Spec{CN: cn, Hosts: []string{cn + ".example"}, NotBefore: now.Add(from), NotAfter: now.Add(until)}
		}
		own := func(leaf *x509.Certificate) error {
			if strings.HasPrefix(leaf.Subject.CommonName, "other") {
				return errors.New("it is for another host")
			}
			return nil
		}
		f := ca.Issue(t, spec("good", -time.Minute, 24*time.Minute)).Files(t)
		o, log := options(Server, f), &lines{}
		o.Own = own
		s, err := Load(o, hclog.New(&hclog.LoggerOptions{Output: log}))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		put := func(spec testca.Spec, used, reason string) {
			t.Helper()
			c := ca.Issue(t, spec)
			testca.WriteFile(t, f.Key, c.KeyPEM(t), c.CertPEM())
			later()
			if got := s.current.Load().cert.Leaf.Subject.CommonName; got != used {
				t.Errorf("%s is in use, want %s", got, used)
			}
			reload := s.replace(o)
			for _, err := range []error{s.Stats().LastError, reload} {
				if (err != nil) != (reason != "") || err != nil && !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: %v, want %q", spec.CN, err, reason)
				}
			}
		}
		put(spec("expired", -2*time.Minute, -time.Minute), "good", "has expired at")
		put(spec("future", time.Minute, 48*time.Minute), "good", "is not valid before")
		put(spec("other", -time.Minute, 24*time.Minute), "good", "is not for this server: it is for another host; the previous one, of CN=good, which expires at")
		put(spec("other-expired", -2*time.Minute, -time.Minute), "good", ", and it is not for this server")
		put(spec("new", -time.Minute, 24*time.Minute), "new", "")
		put(spec("future", time.Minute, 48*time.Minute), "new", "is not valid before")
		if st := s.Stats(); st.Failures != 5 {
			t.Errorf("%+v", st)
		}
		if n := strings.Count(log.String(), "the previous content stays in use"); n != 5 {
			t.Errorf("%d lines about 5 failures: %s", n, log)
		}
		time.Sleep(time.Minute)
		later()
		if got, st := s.current.Load().cert.Leaf.Subject.CommonName, s.Stats(); got != "future" || st.LastError != nil {
			t.Errorf("%s is in use once the new one is valid: %+v", got, st)
		}
		put(spec("other", -time.Minute, 72*time.Minute), "future", "is not for this server")
		time.Sleep(48 * time.Minute) // both are bad now, each in its way
		later()
		if got := s.current.Load().cert.Leaf.Subject.CommonName; got != "other" {
			t.Errorf("%s is in use after the end of both", got)
		}
	})
}

// Trusted authorities and revocation lists do not wait for the certificate, and are taken back with
// it.
func TestRun_WorseCertificateBesideANewAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other, now := testca.New(t, "root"), testca.New(t, "other"), time.Now()
		f := ca.Issue(t, testca.Spec{CN: "good"}).Files(t)
		good, err := os.ReadFile(f.Key)
		root, rootErr := os.ReadFile(f.CA)
		if err := errors.Join(err, rootErr); err != nil {
			t.Fatal(err)
		}
		s, err := Load(options(Server, f), hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		expect := func(when, authority string, refused bool) {
			t.Helper()
			later()
			c, err := s.current.Load(), s.Stats().LastError
			if cert := c.server.Certificates[0].Leaf.Subject.CommonName; cert != "good" || c.cert.Leaf.Subject.CommonName != cert {
				t.Errorf("%s: the certificate of %s is in use", when, cert)
			}
			if trusted := c.trusted[0].Subject.CommonName; trusted != authority {
				t.Errorf("%s: %s is trusted, want %s", when, trusted, authority)
			}
			if (err != nil) != refused {
				t.Errorf("%s: refused: %v", when, err)
			}
		}
		expired := ca.Issue(t, testca.Spec{CN: "expired", NotBefore: now.Add(-time.Hour), NotAfter: now.Add(-time.Minute)})
		testca.WriteFile(t, f.Key, expired.KeyPEM(t), expired.CertPEM())
		expect("expired", "root", true)
		testca.WriteFile(t, f.CA, other.CertPEM())
		expect("another authority", "other", true)
		testca.WriteFile(t, f.CA, root)
		testca.WriteFile(t, f.Key, good)
		expect("all undone", "root", false)
	})
}

// replace replaces the options. After an error nothing has changed.
func (s *Source) replace(o Options) error {
	use, err := s.Prepare(o)
	if err == nil {
		use()
	}
	return err
}
