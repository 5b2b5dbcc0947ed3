package server

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/consensus"
)

// PeerTLS is the configuration of TLS between members.
type PeerTLS = consensus.PeerTLS

// PeerTLSMode says which connections between members are encrypted.
type PeerTLSMode = consensus.PeerTLSMode

// The modes of PeerTLS, in the order in which an ensemble takes them. Each connects with its
// neighbors.
const (
	PeerTLSOff      = consensus.PeerTLSOff      // plain connections only
	PeerTLSAccepted = consensus.PeerTLSAccepted // plain connections are made, both kinds are accepted (portUnification)
	PeerTLSDialed   = consensus.PeerTLSDialed   // TLS connections are made, both kinds are accepted (sslQuorum and portUnification)
	PeerTLSRequired = consensus.PeerTLSRequired // TLS connections only (sslQuorum)
)

// checkPeers returns the errors in how members prove to each other who they are.
func (c *Config) checkPeers() (errs []error) {
	if n := len(c.PeerSecret); n > 0 && n < consensus.MinPeerSecret {
		errs = append(errs, fmt.Errorf("server: PeerSecret has %d bytes, it must have at least %d", n, consensus.MinPeerSecret))
	}
	if err := c.PeerTLS.Check(); err != nil {
		errs = append(errs, fmt.Errorf("server: PeerTLS: %w", err))
	}
	return errs
}

// peerLink returns what the connections with a member use, to it and from it: "plain", the version
// of TLS, or "" if there is no connection.
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
