package config

import (
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// peerTLS is the prefix of the keys of TLS between servers.
const peerTLS = "ssl.quorum."

// peerTLSKeys say which connections between servers use TLS, and how.
func peerTLSKeys(c *Config) []key {
	return append([]key{
		live("sslQuorum", strict, "false", &c.SSLQuorum,
			"[TLS between servers](../guide/security.md#3-tls-between-servers); only TLS, unless portUnification is set"),
		live("portUnification", strict, "false", &c.PeerPortUnification,
			"the peer port accepts TLS, if there is a key store, and plain connections"),
		live("gozkd.peer.tlsEnsemble", likeHost("the name ENSEMBLE alone"), "", &c.Server.PeerTLS.Ensemble,
			"the ENSEMBLE of URIs gozkd://ENSEMBLE/ID in certificates; default: any"),
		none("sslQuorumReloadCertFiles", strict, "", "always on, within two seconds"),
	}, quorumKeys(c)...)
}

// quorumKeys returns the rows ssl.quorum.*.
func quorumKeys(c *Config) (rows []key) {
	notes := map[string]string{
		"hostnameVerification":       "a server's certificate must name the host of its server line; false also turns clientHostnameVerification off",
		"clientHostnameVerification": "the same for calling servers",
		"allowReverseDnsLookup":      "if a server line has an IP address, the certificate may name its DNS name instead, if that name resolves back",
		"clientAuth":                 "need: servers without a certificate are refused; want, none: identified as without TLS",
		"trustStore.location":        "file with the authorities of the servers' certificates; required for TLS",
	}
	for _, k := range tlsKeys(peerTLS, true, &c.PeerTLS) {
		name := strings.TrimPrefix(k.name, peerTLS)
		if note, ok := notes[name]; ok {
			k.note = note
		}
		if name == "handshakeDetectionTimeoutMillis" {
			k = live(k.name, integer(1, maxInt), "5000", &c.Server.PeerTLS.DetectionTimeout,
				"ms for a caller's first byte at the peer port, at most 5 s").of(peerTLS)
		}
		rows = append(rows, k)
	}
	return rows
}

// ServesPeerTLS reports whether other servers can connect with TLS.
func (c Config) ServesPeerTLS() bool {
	return len(c.Members) > 0 && (c.SSLQuorum || c.PeerPortUnification && c.PeerTLS.KeyStore.Location != "")
}

// peerTLS completes and checks TLS between servers.
func (r *resolver) peerTLS(c *Config) {
	c.PeerTLS.Prefix, c.PeerTLS.Role = peerTLS, tlsconf.Both
	_, admin := c.AdminTLS()
	admin = admin && c.AdminEnabled
	r.groupProblems(peerTLS, c.ServesPeerTLS() || admin, noTLS)
	if !c.ServesPeerTLS() {
		r.noEffect(len(c.Members) > 0 && !admin, peerTLS+"keyStore.location", " without sslQuorum or portUnification: the connections between servers are not encrypted")
		r.noEffect(len(c.Members) > 0 && c.PeerPortUnification, "portUnification", ": ssl.quorum.keyStore.location is not set")
		return
	}
	w := r.firstOn("sslQuorum", "portUnification")
	if err := c.PeerTLS.Check(); err != nil {
		r.problem(w.from, w.key, "is %s, and %v", w.value, err)
	}
	const otherwise = "without gozkd.peer.secretFile, or URIs gozkd://ENSEMBLE/ID in the certificates, whoever has a certificate of these authorities and the address of a server passes for it"
	if w, ok := r.won[peerTLS+"hostnameVerification"]; ok && !c.PeerTLS.HostnameVerification {
		r.warn(w.from, w.key, "the certificates are not compared with the server lines: %s", otherwise)
	}
	if w, ok := r.won[peerTLS+"clientAuth"]; ok && !strings.EqualFold(c.PeerTLS.ClientAuth, tlsconf.Need) {
		r.warn(w.from, w.key, "servers without a certificate are not refused: %s", "without gozkd.peer.secretFile they prove who they are by their addresses")
	}
}
