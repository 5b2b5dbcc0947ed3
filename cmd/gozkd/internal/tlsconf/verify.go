package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/gozkd/gozkd/internal/certhost"
	"github.com/gozkd/gozkd/internal/neterr"
)

// refusal is why a certificate was refused.
type refusal struct{ reason, text string }

func (r *refusal) Error() string     { return r.text }
func (r *refusal) TLSReason() string { return r.reason }

// verifyServer verifies the certificate of a server that was dialed as host.
func (c *content) verifyServer(cs tls.ConnectionState, host string) error {
	if len(cs.PeerCertificates) == 0 {
		return &refusal{neterr.NoCertificate, "the server sent no certificate"}
	}
	leaf, others := cs.PeerCertificates[0], x509.NewCertPool()
	for _, cert := range cs.PeerCertificates[1:] {
		others.AddCert(cert)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: c.roots, Intermediates: others, CurrentTime: time.Now()})
	if err == nil && c.options.HostnameVerification {
		err = certhost.Verify(leaf, host)
	}
	if err == nil {
		err = c.checkRevoked(chains)
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
	}
	return nil
}

// verifyCaller checks revocation and, if configured, the address, which crypto/tls does not check.
func (c *content) verifyCaller(ctx context.Context, cs tls.ConnectionState, addr net.Addr) error {
	if len(cs.PeerCertificates) == 0 {
		return nil // ClientAuth has decided
	}
	err := c.checkRevoked(cs.VerifiedChains)
	if err == nil && c.verifiesAddresses() {
		err = c.verifyAddress(ctx, cs.PeerCertificates[0], addr)
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
	}
	return nil
}

// verifyAddress reports an error unless a caller's certificate is for the address of its
// connection. Source: ZooKeeper's ZKTrustManager.performHostVerification.
func (c *content) verifyAddress(ctx context.Context, cert *x509.Certificate, addr net.Addr) error {
	if addr == nil {
		return errors.New("the connection has no address to verify")
	}
	host := addr.String()
	if ap, err := netip.ParseAddrPort(host); err == nil {
		host = ap.Addr().Unmap().WithZone("").String()
	}
	if !c.options.ReverseDNS {
		return certhost.Verify(cert, host)
	}
	return certhost.VerifyReverse(ctx, cert, host, c.options.Resolver)
}

// verifiesAddresses reports whether callers' addresses are verified.
func (c *content) verifiesAddresses() bool {
	return c.options.HostnameVerification && c.options.ClientHostnameVerification
}
