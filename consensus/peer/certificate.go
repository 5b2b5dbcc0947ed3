package peer

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/certhost"
	"github.com/gozkd/gozkd/internal/memberid"
)

// checkCertificate decides whether the other side's certificate may be used for a member: it must
// be valid for the host of the member's address, if host is true and the address is known, and its
// URIs of scheme gozkd, if there are any, must name the member. bound means that they do, so that
// no other proof is needed. Without TLS, and without a certificate, nothing is checked.
func (n *Network) checkCertificate(ctx context.Context, enc *encryption, s *secureConn, id uint64, address string, host bool) (bound bool, err error) {
	certificates := s.ConnectionState().PeerCertificates
	if len(certificates) == 0 {
		return false, nil // Server does not require a certificate
	}
	return enc.checkLeaf(ctx, certificates[0], n.cfg.Self, id, address, host, n.resolver)
}

// CheckOwn reports why the other members refuse a certificate of this member, which its server line
// gives an address. A name that only the DNS knows is not looked up.
func (t *TLS) CheckOwn(leaf *x509.Certificate, id uint64, address string) error {
	_, err := t.checkLeaf(context.Background(), leaf, id, id, address, !t.AnyHost && !t.ReverseDNS, nil)
	return err
}

// checkLeaf is checkCertificate for a certificate, on the member self.
func (t *TLS) checkLeaf(
	ctx context.Context, leaf *x509.Certificate, self, id uint64, address string, host bool, resolver certhost.Resolver,
) (bound bool, err error) {
	bound, named, err := namesMember(leaf, t.Ensemble, id)
	switch {
	case err != nil:
		return false, refuse(RefusedCertificate, "the certificate of member %d is not accepted: %w", id, err)
	case len(named) > 0 && !bound:
		return false, refuse(RefusedCertificate, "the certificate of member %d names %s: it must name gozkd://%s", id, strings.Join(named, ", "), path.Join(t.Ensemble, strconv.FormatUint(memberid.Number(id), 10)))
	}
	if !host || address == "" {
		return bound, nil
	}
	var h string
	for one := range strings.SplitSeq(address, addressSeparator) {
		h = hostOfAddress(one)
		if t.ReverseDNS {
			err = certhost.VerifyReverse(ctx, leaf, h, resolver)
		} else {
			err = certhost.Verify(leaf, h)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return false, refuse(RefusedCertificate, "the certificate of member %d is for %q, and its server line on member %d names %s: make a certificate with this subjectAltName, or set ssl.quorum.hostnameVerification=false", id, certhost.Hosts(leaf), self, h)
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

// uriScheme is that of a certificate's URIs that name a member: gozkd://ensemble/id, or gozkd://id.
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

func parseMemberURI(u *url.URL) (ensemble string, id uint64, err error) {
	ensemble, number := u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Path == "" {
		ensemble, number = "", u.Host
	}
	n, err := strconv.ParseUint(number, 10, 64)
	id = memberid.Of(n)
	if err != nil || id == 0 || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", 0, fmt.Errorf("%q is not gozkd://ENSEMBLE/ID or gozkd://ID", u)
	}
	return ensemble, id, nil
}
