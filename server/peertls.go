package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/consensus/peer"
)

// PeerTLS says which connections between members are encrypted, and which certificates are
// accepted. The zero value is PeerTLSOff.
type PeerTLS struct {
	Mode PeerTLSMode
	// Server is the configuration for accepted connections, and Client returns that for dialing a
	// host. They are required unless Mode is PeerTLSOff. Both must verify the chain of the other
	// side's certificate; Server should require it (tls.RequireAndVerifyClientCert). New
	// certificates may be handed out at any time (Server.GetConfigForClient, Client).
	Server *tls.Config
	Client func(host string) *tls.Config
	// A certificate must be valid for the host in the address of the member that it is used for.
	// AnyHost skips this check on both sides, AnyCallerHost that of the accepting side. What Server
	// and Client verify by themselves is verified in any case.
	AnyHost, AnyCallerHost bool
	// ReverseDNS: if the host of a member is an IP address, a certificate may also be valid for a
	// name that the DNS has for this address.
	ReverseDNS bool
	// Ensemble is the name in the URIs gozkd://ensemble/id of certificates. Empty: any name.
	Ensemble string
	// DetectionTimeout bounds the wait for the first byte of a caller, which tells TLS from a plain
	// connection. Default, and maximum: 5 s.
	DetectionTimeout time.Duration
}

func (t *PeerTLS) forPeers() consensus.PeerTLS {
	return consensus.PeerTLS{
		Mode: peer.TLSMode(t.Mode), Server: t.Server, Client: t.Client, AnyHost: t.AnyHost, AnyCallerHost: t.AnyCallerHost,
		ReverseDNS: t.ReverseDNS, Ensemble: t.Ensemble, DetectionTimeout: t.DetectionTimeout,
	}
}

// Check returns an error if the configuration is incomplete.
func (t *PeerTLS) Check() error { return new(t.forPeers()).Check() }

// CheckOwn returns why the other members refuse a certificate of this member, which its server line
// names by id and by the address for other members, or nil.
func (t *PeerTLS) CheckOwn(leaf *x509.Certificate, id uint64, address string) error {
	return new(t.forPeers()).CheckOwn(leaf, id, address)
}

// PeerTLSMode says which connections between members are encrypted. An ensemble moves from plain
// connections to TLS, or back, in single steps: each mode connects with its neighbors.
type PeerTLSMode int

// String describes the mode.
func (m PeerTLSMode) String() string { return peer.TLSMode(m).String() }

// The modes, in the order in which an ensemble takes them.
const (
	PeerTLSOff      = PeerTLSMode(peer.TLSOff)      // plain connections only
	PeerTLSAccepted = PeerTLSMode(peer.TLSAccepted) // plain ones are made, both kinds are accepted (portUnification)
	PeerTLSDialed   = PeerTLSMode(peer.TLSDialed)   // TLS is used to dial, both kinds are accepted (also sslQuorum)
	PeerTLSRequired = PeerTLSMode(peer.TLSRequired) // TLS connections only (sslQuorum)
)

func (c *Config) checkPeers() (errs []error) {
	if n := len(c.PeerSecret); n > 0 && n < consensus.MinPeerSecret {
		errs = append(errs, fmt.Errorf("server: PeerSecret has %d bytes, it must have at least %d", n, consensus.MinPeerSecret))
	}
	if err := c.PeerTLS.Check(); err != nil {
		errs = append(errs, fmt.Errorf("server: PeerTLS: %w", err))
	}
	return errs
}

// peerLink returns the protocols of the connections to and from a member: "plain", the version of
// TLS, or "" if there is no connection.
func peerLink(links []consensus.PeerLink, id uint64) (to, from string) {
	i := slices.IndexFunc(links, func(l consensus.PeerLink) bool { return l.ID == id })
	if i < 0 {
		return "", ""
	}
	if links[i].Connected {
		to = cmp.Or(links[i].TLS, "plain")
	}
	if links[i].Incoming {
		from = cmp.Or(links[i].IncomingTLS, "plain")
	}
	return to, from
}
