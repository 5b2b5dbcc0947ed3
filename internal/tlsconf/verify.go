package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/tlsreason"
)

// lookupTimeout bounds how long a handshake waits for the DNS.
const lookupTimeout = 5 * time.Second

// refusal is why a certificate was refused.
type refusal struct{ reason, text string }

func (r *refusal) Error() string     { return r.text }
func (r *refusal) TLSReason() string { return r.reason }

// VerifyHost reports an error unless a certificate is for a host: a name or an IP address. As in Java,
// a certificate without any DNS name and IP address is for the host that its common name says, because
// ZooKeeper's documentation makes such certificates. Source: ZooKeeper's ZKHostnameVerifier.
func VerifyHost(cert *x509.Certificate, host string) error {
	named := cert
	if len(cert.DNSNames) == 0 && len(cert.IPAddresses) == 0 {
		cn := cert.Subject.CommonName
		named = &x509.Certificate{DNSNames: []string{cn}}
		if ip := net.ParseIP(cn); ip != nil {
			named = &x509.Certificate{IPAddresses: []net.IP{ip}}
		}
	}
	if host == "" || named.VerifyHostname(host) != nil {
		var names []string
		for _, ip := range named.IPAddresses {
			names = append(names, ip.String())
		}
		return &refusal{tlsreason.WrongHost, fmt.Sprintf("the certificate is for %s, not for %q", strings.Join(append(names, named.DNSNames...), ", "), host)}
	}
	return nil
}

// VerifyAddress reports an error unless a caller's certificate is for the address of its connection,
// or, if resolver is not nil, for a name that the DNS has for that address and resolves to it. Source:
// ZooKeeper's ZKTrustManager.performHostVerification.
func VerifyAddress(ctx context.Context, cert *x509.Certificate, addr net.Addr, resolver Resolver) error {
	if addr == nil {
		return errors.New("the connection has no address to verify")
	}
	host := addr.String()
	if ap, err := netip.ParseAddrPort(host); err == nil {
		host = ap.Addr().Unmap().WithZone("").String()
	}
	err := VerifyHost(cert, host)
	if err == nil || resolver == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	names, lookupErr := resolver.LookupAddr(ctx, host)
	if lookupErr != nil {
		return fmt.Errorf("%w, and its name is unknown: %w", err, lookupErr)
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, ".")
		if err = VerifyHost(cert, name); err == nil {
			err = resolves(ctx, resolver, name, host)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// resolves reports an error unless name has the address ip: whoever owns an address can give it any
// name.
func resolves(ctx context.Context, resolver Resolver, name, ip string) error {
	addrs, err := resolver.LookupIPAddr(ctx, name)
	for _, a := range addrs {
		if a.IP.Equal(net.ParseIP(ip)) {
			return nil
		}
	}
	return errors.Join(&refusal{tlsreason.WrongHost, fmt.Sprintf("%s does not resolve to %s, which claims that name", name, ip)}, err)
}

// verifyServer verifies the certificate of a server that was dialed as host.
func (c *content) verifyServer(cs tls.ConnectionState, host string) error {
	if len(cs.PeerCertificates) == 0 {
		return &refusal{tlsreason.NoCertificate, "the server sent no certificate"}
	}
	leaf, others := cs.PeerCertificates[0], x509.NewCertPool()
	for _, cert := range cs.PeerCertificates[1:] {
		others.AddCert(cert)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: c.roots, Intermediates: others, CurrentTime: time.Now()})
	if err == nil && c.options.HostnameVerification {
		err = VerifyHost(leaf, host)
	}
	if err == nil {
		err = c.checkRevoked(chains)
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
	}
	return nil
}

// verifyCaller verifies what crypto/tls does not: revocation and, if configured, the address.
func (c *content) verifyCaller(ctx context.Context, cs tls.ConnectionState, addr net.Addr) error {
	if len(cs.PeerCertificates) == 0 {
		return nil // ClientAuth has decided
	}
	err := c.checkRevoked(cs.VerifiedChains)
	if err == nil && c.verifiesAddresses() {
		var resolver Resolver
		if c.options.ReverseDNS {
			resolver = c.options.Resolver
		}
		err = VerifyAddress(ctx, cs.PeerCertificates[0], addr, resolver)
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
	}
	return nil
}

// verifiesAddresses reports whether callers' addresses are verified.
func (c *content) verifiesAddresses() bool {
	return c.options.HostnameVerification && c.options.ClientHostnameVerification
}
