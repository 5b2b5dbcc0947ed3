package peer

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkCertificate decides whether the other side's certificate may be used for a member: it must be
// valid for the host of the member's address, if host is true and the address is known, and its URIs
// of scheme gozkd, if there are any, must name the member. bound means that they do, so that no
// other proof is needed. Without TLS, and without a certificate, nothing is checked.
func (n *Network) checkCertificate(ctx context.Context, enc *encryption, s *secureConn, id uint64, address string, host bool) (bound bool, err error) {
	certificates := s.ConnectionState().PeerCertificates
	if len(certificates) == 0 {
		return false, nil // Server does not require one
	}
	leaf := certificates[0]
	bound, named, err := namesMember(leaf, enc.Ensemble, id)
	switch {
	case err != nil:
		return false, refuse(RefusedCertificate, "the certificate of member %d is not accepted: %w", id, err)
	case len(named) > 0 && !bound:
		return false, refuse(RefusedCertificate, "the certificate of member %d names %s: it must name gozkd://%s", id, strings.Join(named, ", "), memberPath(enc.Ensemble, id))
	}
	if h := hostOfAddress(address); host && address != "" && !n.certifies(ctx, leaf, h, enc.ReverseDNS) {
		return false, refuse(RefusedCertificate, "the certificate of member %d is for %s, and its server line on member %d names %s: make a certificate with this subjectAltName, or set ssl.quorum.hostnameVerification=false", id, hostsOf(leaf), n.cfg.Self, h)
	}
	return bound, nil
}

// checkCaller is checkCertificate for an accepted connection. It waits for the DNS until v.until.
func (n *Network) checkCaller(ctx context.Context, v *visitor, from uint64, address string) (bound bool, err error) {
	s, ok := v.stream.(*secureConn)
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithDeadline(ctx, v.until)
	defer cancel()
	return n.checkCertificate(ctx, v.enc, s, from, address, !v.enc.AnyHost && !v.enc.AnyCallerHost)
}

// memberPath returns the part of a URI after gozkd://.
func memberPath(ensemble string, id uint64) string {
	if ensemble == "" {
		return strconv.FormatUint(id, 10)
	}
	return ensemble + "/" + strconv.FormatUint(id, 10)
}

// uriScheme is the scheme of the URIs that name a member in a certificate: gozkd://ensemble/id, or
// gozkd://id.
const uriScheme = "gozkd"

// namesMember reports whether a URI of the certificate names a member of the ensemble, and returns
// all URIs of scheme gozkd.
func namesMember(leaf *x509.Certificate, ensemble string, id uint64) (ok bool, named []string, err error) {
	for _, u := range leaf.URIs {
		if !strings.EqualFold(u.Scheme, uriScheme) {
			continue
		}
		named = append(named, u.String())
		theirs, member, err := parseMemberURI(u)
		if err != nil {
			return false, named, err
		}
		if member == id && (ensemble == "" || theirs == ensemble) {
			ok = true
		}
	}
	return ok, named, nil
}

// parseMemberURI returns the ensemble, which may be empty, and the member that a URI names.
func parseMemberURI(u *url.URL) (ensemble string, id uint64, err error) {
	ensemble, number := u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Path == "" {
		ensemble, number = "", u.Host
	}
	id, err = strconv.ParseUint(number, 10, 64)
	if err != nil || id == 0 || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", 0, fmt.Errorf("%q is not gozkd://ENSEMBLE/ID or gozkd://ID", u)
	}
	return ensemble, id, nil
}

// certifies reports whether a certificate is valid for a host.
func (n *Network) certifies(ctx context.Context, leaf *x509.Certificate, host string, reverseDNS bool) bool {
	if certifiesHost(leaf, host) {
		return true
	}
	if !reverseDNS || net.ParseIP(host) == nil {
		return false
	}
	names, _ := n.resolver.LookupAddr(ctx, host) // without an answer the host stays uncertified
	for _, name := range names {
		if certifiesHost(leaf, strings.TrimSuffix(name, ".")) && n.resolves(ctx, name, host) {
			return true
		}
	}
	return false
}

// resolver is the part of net.Resolver that is used.
type resolver interface {
	LookupAddr(ctx context.Context, ip string) (names []string, err error)
	LookupIPAddr(ctx context.Context, name string) ([]net.IPAddr, error)
}

// resolves reports whether a name has an address: whoever owns an address can give it any name.
func (n *Network) resolves(ctx context.Context, name, ip string) bool {
	addresses, _ := n.resolver.LookupIPAddr(ctx, name) // without an answer the name has no address
	return slices.ContainsFunc(addresses, func(a net.IPAddr) bool { return a.IP.Equal(net.ParseIP(ip)) })
}

// certifiesHost reports whether a certificate is valid for a host: by its subjectAltName or, as in
// ZooKeeper, by the CN of a certificate without DNS names and IP addresses.
func certifiesHost(leaf *x509.Certificate, host string) bool {
	if len(leaf.DNSNames)+len(leaf.IPAddresses) > 0 {
		return leaf.VerifyHostname(host) == nil
	}
	cn := leaf.Subject.CommonName
	if ip := net.ParseIP(host); ip != nil {
		return ip.Equal(net.ParseIP(cn))
	}
	return (&x509.Certificate{DNSNames: []string{cn}}).VerifyHostname(host) == nil
}

// hostsOf returns the hosts of a certificate for a message.
func hostsOf(leaf *x509.Certificate) string {
	hosts := append([]string(nil), leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	if len(hosts) == 0 {
		hosts = append(hosts, "CN="+leaf.Subject.CommonName)
	}
	return strconv.Quote(strings.Join(hosts, ", "))
}
