package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// clientTLS is the prefix of the keys of tlsconf.Options.
const clientTLS = "ssl."

var (
	// password may be empty.
	password = kind{
		allowed: "any password",
		parse:   func(v string) (string, bool) { return v, true },
	}
	// newProtocols are the supported versions, oldProtocols those that only Java has. A version
	// that is too old is left out with a warning, because ZooKeeper starts with it.
	newProtocols = []string{"TLSv1.2", "TLSv1.3"}
	oldProtocols = []string{"SSLv2Hello", "SSLv2", "SSLv3", "SSL", "TLSv1", "TLSv1.1"}
	protocol     = kind{
		allowed: "TLS, TLSv1.2, TLSv1.3",
		parse:   oneOf("TLS", "TLSv1.2", "TLSv1.3").parse,
		nearest: func(v string) (string, bool) { return "TLS", slices.Contains(oldProtocols, v) },
	}
	protocols = kind{
		allowed: "TLSv1.2 and TLSv1.3, separated by commas",
		parse: func(v string) (string, bool) {
			words := splitList(v)
			return strings.Join(words, ","), len(words) > 0 && len(without(words, newProtocols)) == 0
		},
		nearest: func(v string) (string, bool) {
			words := splitList(v)
			kept := without(words, oldProtocols)
			if len(kept) == 0 {
				kept = newProtocols
			}
			return strings.Join(kept, ","), len(words) > 0 && len(without(kept, newProtocols)) == 0
		},
	}
	suites = kind{
		allowed: "names such as TLS_AES_128_GCM_SHA256, separated by commas",
		parse:   wordList.parse,
	}
)

// without returns the words that are not among some others.
func without(words, others []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(others, w) })
}

// portKeys open the ports for TLS, and say who its clients are.
func portKeys(c *Config) []key {
	return []key{
		row("secureClientPort", integer(0, 65535), "0", &c.SecureClientPort,
			"[TLS](../guide/security.md#tls-for-clients) port for clients; 0: none"),
		row("secureClientPortAddress", host, "all addresses", &c.SecureClientPortAddress,
			"address of secureClientPort"),
		live("client.portUnification", boolean, "false", &c.Server.PortUnification,
			"clientPort accepts TLS and plain connections"),
		live("netty.server.outstandingHandshake.limit", property32(-1, maxInt), "250", orNone(&c.Server.HandshakeLimit, 1),
			"TLS handshakes under way; -1, 0 (ZooKeeper's default): no bound").alias("outstandingHandshake.limit"),
		live("X509AuthenticationProvider.superUser", orEmpty(text), "", &c.Server.Auth.X509.SuperUser,
			"the superuser's x509 identity"),
		live("gozkd.x509.id", oneOf("subject", "cn", "san:uri", "san:dns", "san:email"), "subject", &c.X509ID,
			"identity in a client's certificate: subject, common name, or the only alternative name of that type"),
		none("client.certReload", boolean, "false", "always on, within two seconds"),
		none("netty.server.earlyDropSecureConnectionHandshakes", boolean, "", "always on"),
		none("serverCnxnFactory", anything, "", "a class of the Java server"),
	}
}

// tlsKeys returns the rows of tlsconf.Options below a prefix. What is wrong with one of them
// prevents the start only if TLS with these options is served: see groupProblems.
func tlsKeys(prefix string, hosts bool, o *tlsconf.Options) []key {
	row := func(name string, k kind, def string, field any, note string) key {
		return live(prefix+name, k, def, field, note).of(prefix)
	}
	other := func(name string, k kind, s status, note string, fine ...string) key {
		return key{name: prefix + name, group: prefix, kind: k, status: s, note: note, fine: fine}
	}
	store := func(name string, s *tlsconf.Store, alias, note string) []key {
		location := row(name+".location", orEmpty(text), "", &s.Location, note)
		if prefix == clientTLS {
			location = location.alias("gozkd.tls." + alias)
		}
		return []key{
			location,
			row(name+".password", password, "", &s.Password, "password of that store").hidden(),
			row(name+".passwordPath", orEmpty(text), "", &s.PasswordFile, "file with that password; wins over `.password`"),
			row(name+".type", orEmpty(oneOf("JKS", "PKCS12", "PEM", "BCFKS")), "", &s.Type,
				"no effect: the file's content decides; BCFKS is refused"),
		}
	}
	rows := append(slices.Concat(
		store("keyStore", &o.KeyStore, "cert", "file with this server's key and certificate: JKS, PKCS12 or PEM; required for TLS"),
		store("trustStore", &o.TrustStore, "ca",
			"file with the authorities of callers' certificates; required unless clientAuth is none"),
	), []key{
		row("protocol", orEmpty(protocol), "TLS", &o.Protocol,
			"the only TLS version, unless enabledProtocols is set; TLS: both"),
		row("enabledProtocols", orEmpty(protocols), "both", &o.EnabledProtocols, "versions of TLS"),
		row("ciphersuites", orEmpty(suites), "Go's choice", &o.CipherSuites,
			"IANA names. A list without a TLS 1.3 suite disables TLS 1.3"),
		row("clientAuth", orEmpty(oneOf(tlsconf.Need, tlsconf.Want, tlsconf.None)), tlsconf.Need, &o.ClientAuth,
			"need: callers need a certificate; want: any certificate is verified; none: not requested"),
		row("hostnameVerification", boolean, "true", &o.HostnameVerification,
			"a server's certificate must name the dialed host; false also turns clientHostnameVerification off"),
		row("clientHostnameVerification", boolean, strconv.FormatBool(hosts), &o.ClientHostnameVerification,
			"a caller's certificate must name its address"),
		row("allowReverseDnsLookup", boolean, "false", &o.ReverseDNS,
			"with clientHostnameVerification, a certificate may name the DNS name of the caller's address instead, "+
				"if that name resolves back"),
		row("crl", boolean, "false", &o.CRL,
			"certificates revoked by crlLocation's lists, or without a current list, are refused"),
		row("ocsp", boolean, "false", &o.OCSP, "true prevents the start: use revocation lists"),
		other("context.supplier.class", text, refused, "a class of the Java server"),
		other("sslProvider", text, refused, "the TLS implementation is Go's", "JDK", "OPENSSL", "OPENSSL_REFCNT"),
		other("authProvider", text, refused, "a class of the Java server", "x509"),
		other("handshakeDetectionTimeoutMillis", anything, harmless, "use nio.sessionlessCnxnTimeout"),
		other("client.*", anything, harmless, "a property of the Java client"),
		other("endpoint.identification.algorithm", anything, harmless, "a property of Kafka"),
		other("*", anything, later, "not a key of ZooKeeper 3.9"),
	}...)
	rows[len(rows)-1].secret = true // a password, if a letter of its key is wrong
	crl := row("crlLocation", text, "", &o.CRLLocation, "file or directory with revocation lists, PEM or DER")
	crl.name = "gozkd." + crl.name
	bare := row("key", text, "", &o.KeyStore.Key, "PEM file with the key, if the key store has only certificates")
	bare.name = tlsconf.BareKey(prefix)
	return append(rows, crl, bare)
}

// tls completes and checks the TLS of the client ports.
func (r *resolver) tls(c *Config) {
	c.ClientTLS.Prefix, c.ClientTLS.Role = clientTLS, tlsconf.Server
	r.groupProblems(clientTLS, c.ServesTLS(), noTLS)
	if w, ok := r.won["secureClientPortAddress"]; ok && c.SecureClientPort == 0 {
		r.problem(w.from, w.key, "is %s, but secureClientPort is not set", w.value)
	}
	if !c.ServesTLS() {
		for _, name := range r.order {
			if w := r.won[name]; strings.HasPrefix(name, clientTLS) && !strings.HasPrefix(name, "ssl.quorum.") && w.row.status == works {
				r.warn(w.from, w.key, "has no effect without secureClientPort or client.portUnification")
				return // one line for all of them
			}
		}
		return
	}
	port, given := r.won["clientPort"]
	given = given && (c.ClientPort != 0 || port.from.layer == fromFlags) // 0 of a flag is any free port
	c.SecureOnly = c.SecureClientPort != 0 && !given && !c.Server.PortUnification && !r.ownPort
	if err := c.ClientTLS.Check(); err != nil {
		w := r.firstOn("secureClientPort", "client.portUnification")
		r.problem(w.from, w.key, "is %s, and %v", w.value, err)
	}
}

// ServesTLS reports whether clients can connect with TLS.
func (c Config) ServesTLS() bool { return c.SecureClientPort != 0 || c.Server.PortUnification }

// SecureListenAddress returns the host:port for clients with TLS, or "".
func (c Config) SecureListenAddress() string {
	if c.SecureClientPort == 0 {
		return ""
	}
	return HostPort(c.SecureClientPortAddress, c.SecureClientPort)
}
