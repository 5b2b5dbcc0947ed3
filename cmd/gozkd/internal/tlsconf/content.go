package tlsconf

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// content is the parsed content of a Source's files. Except for the ticket keys, it is immutable.
type content struct {
	options  Options
	protocol protocol
	warn     []string                     // about the files
	cert     *tls.Certificate             // nil: none, for a client
	roots    *x509.CertPool               // nil: those of the system, for a client
	trusted  []*x509.Certificate          // the same
	crls     map[string][]*revocationList // by issuer
	server   *tls.Config                  // of the accepting side

	ticketsSince time.Time  // guarded by Source.mu
	tickets      [][32]byte // the present key of session tickets, and the previous one; the same
}

// ticketLife is how long a key issues session tickets; for as long again it decrypts them.
const ticketLife = 24 * time.Hour

func build(o Options, in *input) (*content, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	c := &content{options: o, warn: in.warn}
	var err error
	if c.protocol, err = o.protocol(); err != nil {
		return nil, err
	}
	if o.KeyStore.Location != "" {
		if c.cert, err = o.KeyStore.loadKey(in, c.keyStore()); err != nil {
			return nil, err
		}
	}
	if o.TrustStore.Location != "" {
		if c.trusted, err = o.TrustStore.loadTrust(in, o.key("trustStore.")); err != nil {
			return nil, err
		}
		c.roots = x509.NewCertPool()
		for _, cert := range c.trusted {
			c.roots.AddCert(cert)
		}
	}
	if o.CRL {
		if c.crls, err = loadCRLs(o.key(crlLocation), in.crls, in, c.trusted); err != nil {
			return nil, err
		}
	}
	if o.Role != Client {
		c.server = c.base()
		c.server.Certificates, c.server.ClientCAs, c.server.ClientAuth = []tls.Certificate{*c.cert}, c.roots, o.clientAuth()
		if err := c.rotate(time.Now()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *content) base() *tls.Config {
	return &tls.Config{
		MinVersion: c.protocol.min, MaxVersion: c.protocol.max, CipherSuites: c.protocol.suites,
		DynamicRecordSizingDisabled: true, // small first records would be for pages that a browser shows in part
	}
}

// expiry returns a warning about the certificate that ends first, if that is within 30 days, or "".
// With less than 7 days the warning is critical. A certificate with a short life is renewed later:
// the limits are a third and a twelfth of that life at most. Authorities count as well, those that
// are sent and those that are trusted, except if another of the same name ends later, or if they
// ended 30 days ago: stores of public authorities keep such certificates.
func (c *content) expiry(now time.Time) (text string) {
	const day = 24 * time.Hour
	var first time.Time
	look := func(cert *x509.Certificate, store, whose string) {
		end := cert.NotAfter
		left, life := end.Sub(now), end.Sub(cert.NotBefore)
		if left >= min(30*day, life/3) || text != "" && !end.Before(first) {
			return
		}
		grade, when := "", fmt.Sprintf("expires in %.1f days, at %v", left.Hours()/24, end)
		if left < min(7*day, life/12) {
			grade = "critical: "
		}
		if left < 0 {
			when = fmt.Sprintf("has expired at %v, so it is refused", end)
		}
		first, text = end, grade+store+": the certificate of "+whose+" "+when+": replace it; a restart is not needed"
	}
	if c.cert != nil {
		look(c.cert.Leaf, c.keyStore(), c.options.Ports)
		for i, der := range c.cert.Certificate {
			if ca, err := x509.ParseCertificate(der); err == nil && i > 0 {
				look(ca, c.keyStore(), fmt.Sprintf("the authority %v, which is sent at %s,", ca.Subject, c.options.Ports))
			}
		}
	}
	for _, ca := range c.trusted {
		replaced := func(by *x509.Certificate) bool {
			return by.NotAfter.After(ca.NotAfter) && bytes.Equal(by.RawSubject, ca.RawSubject)
		}
		if now.Sub(ca.NotAfter) < 30*day && !slices.ContainsFunc(c.trusted, replaced) {
			store := c.options.key("trustStore.location") + ": " + c.options.TrustStore.Location
			look(ca, store, fmt.Sprintf("the authority %v, which is trusted at %s,", ca.Subject, c.options.Ports))
		}
	}
	return text
}

// keyStore names the key store, and its keys, in messages.
func (c *content) keyStore() string {
	o := &c.options
	name := o.key("keyStore.location") + ": " + o.KeyStore.Location
	if o.KeyStore.Key != "" {
		name += ", with " + BareKey(o.Prefix) + ": " + o.KeyStore.Key
	}
	return name
}

// flaws returns what is wrong with this side's certificate: expired, not valid yet, own objects.
func (c *content) flaws(now time.Time, own func(*x509.Certificate) error) (texts [3]string) {
	leaf := c.cert.Leaf
	if now.After(leaf.NotAfter) {
		texts[0] = fmt.Sprintf("has expired at %v", leaf.NotAfter)
	}
	if now.Before(leaf.NotBefore) {
		texts[1] = fmt.Sprintf("is not valid before %v", leaf.NotBefore)
	}
	if own != nil {
		if err := own(leaf); err != nil {
			texts[2] = "is not for this server: " + err.Error()
		}
	}
	return texts
}

// worse returns why c must not replace the content old, which may be nil, or nil if c may. The
// certificate of c is worse if it has all flaws of the old certificate and at least one more.
func (c *content) worse(old *content, now time.Time) error {
	if old == nil || old.cert == nil || c.cert == nil {
		return nil
	}
	var why []string
	before := old.flaws(now, c.options.Own)
	for i, text := range c.flaws(now, c.options.Own) {
		switch {
		case text == "" && before[i] != "":
			return nil
		case text != "" && before[i] == "":
			why = append(why, text)
		}
	}
	if why == nil {
		return nil
	}
	leaf := old.cert.Leaf
	return fmt.Errorf("%s: the certificate %s; the previous one, of %s, which expires at %v, is better and stays in use; trusted authorities and revocation lists are those of the files",
		c.keyStore(), strings.Join(why, ", and it "), leaf.Subject, leaf.NotAfter)
}

// withCertificate returns c with another certificate of this side.
func (c *content) withCertificate(cert *tls.Certificate) *content {
	mixed := *c
	mixed.cert = cert
	if c.server != nil {
		mixed.server = c.server.Clone()
		mixed.server.Certificates = []tls.Certificate{*cert}
	}
	return &mixed
}

// rotate changes the key of session tickets if it is too old. crypto/tls would keep its own keys,
// and the identities in tickets, over a change of the content.
func (c *content) rotate(now time.Time) error {
	if c.server == nil || c.tickets != nil && now.Sub(c.ticketsSince) < ticketLife {
		return nil
	}
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return fmt.Errorf("key of session tickets: %w", err)
	}
	c.tickets, c.ticketsSince = append([][32]byte{key}, c.tickets[:min(1, len(c.tickets))]...), now
	c.server.SetSessionTicketKeys(c.tickets)
	return nil
}

// forCaller returns the configuration for a connection that was accepted.
func (c *content) forCaller(hello *tls.ClientHelloInfo) *tls.Config {
	if !c.verifiesAddresses() && !c.options.CRL {
		return c.server
	}
	cfg, ctx, addr := c.server.Clone(), hello.Context(), hello.Conn.RemoteAddr()
	cfg.VerifyConnection = func(cs tls.ConnectionState) error { return c.verifyCaller(ctx, cs, addr) }
	return cfg
}

// forHost returns the configuration of the dialing side.
func (c *content) forHost(host string) *tls.Config {
	cfg := c.base()
	cfg.ServerName = host
	// verifyServer replaces the verification of crypto/tls, which knows no common names.
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(cs tls.ConnectionState) error { return c.verifyServer(cs, host) }
	if c.cert != nil {
		// NB: crypto/tls would send no certificate if the server does not name its authority, and
		// the server's log would say "no certificate".
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
	}
	return cfg
}
