// Package certhost decides whether a certificate is valid for a host. As in ZooKeeper, a
// certificate without any DNS name and IP address is valid for the host that its common name says,
// because ZooKeeper's documentation makes such certificates. Source: ZooKeeper's
// ZKHostnameVerifier.
package certhost

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

const lookupTimeout = 5 * time.Second

// Resolver is the part of net.Resolver that is used.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
}

// mismatch is a HostnameError with a text of its own: that of a certificate without names would say
// that common names do not count.
type mismatch struct {
	x509.HostnameError
	text string
}

func (m *mismatch) Error() string { return m.text }
func (m *mismatch) Unwrap() error { return m.HostnameError }

// Hosts returns the hosts that a certificate names, separated by commas.
func Hosts(cert *x509.Certificate) string {
	hosts := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	if len(hosts) == 0 {
		return "CN=" + cert.Subject.CommonName
	}
	return strings.Join(hosts, ", ")
}

// withNames returns a certificate with at least one DNS name or IP address.
func withNames(cert *x509.Certificate) *x509.Certificate {
	if len(cert.DNSNames)+len(cert.IPAddresses) > 0 {
		return cert
	}
	cn := cert.Subject.CommonName
	if ip := net.ParseIP(cn); ip != nil {
		return &x509.Certificate{IPAddresses: []net.IP{ip}}
	}
	return &x509.Certificate{DNSNames: []string{cn}}
}

// Verify reports an error unless the certificate is valid for the host, a name or an IP address.
func Verify(cert *x509.Certificate, host string) error {
	if host == "" || withNames(cert).VerifyHostname(host) != nil {
		return &mismatch{x509.HostnameError{Certificate: cert, Host: host}, fmt.Sprintf("the certificate is for %s, not for %q", Hosts(cert), host)}
	}
	return nil
}

// VerifyReverse is Verify, except that the certificate of an IP address may also be for a name that
// the DNS has for the address, and that resolves to it: whoever owns an address can give it any
// name. A nil resolver makes it Verify.
func VerifyReverse(ctx context.Context, cert *x509.Certificate, host string, resolver Resolver) error {
	err := Verify(cert, host)
	ip := net.ParseIP(host)
	if err == nil || resolver == nil || ip == nil {
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
		if err = Verify(cert, name); err == nil {
			err = resolves(ctx, cert, name, ip, resolver)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

func resolves(ctx context.Context, cert *x509.Certificate, name string, ip net.IP, resolver Resolver) error {
	addrs, err := resolver.LookupIPAddr(ctx, name)
	if slices.ContainsFunc(addrs, func(a net.IPAddr) bool { return a.IP.Equal(ip) }) {
		return nil
	}
	return errors.Join(&mismatch{x509.HostnameError{Certificate: cert, Host: name}, fmt.Sprintf("%s does not resolve to %s, which claims that name", name, ip)}, err)
}
