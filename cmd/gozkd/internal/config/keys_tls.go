package config

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// clientTLS is the prefix of the keys of tlsconf.Options.
const clientTLS = "ssl."

var (
	// password may be empty. It is left out of Config.String.
	password = kind{
		allowed: "any password",
		parse:   func(v string) (string, bool) { return v, true },
		hidden:  true,
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
var portKeys = []key{
	{name: "secureClientPort", kind: integer(0, 65535), def: "0", status: works, note: "[TLS](../guide/security.md#tls-for-clients) port for clients; 0: none",
		field: func(c *Config) any { return &c.SecureClientPort }},
	{name: "secureClientPortAddress", kind: host, def: "all addresses", status: works, note: "address of secureClientPort",
		field: func(c *Config) any { return &c.SecureClientPortAddress }},
	{name: "client.portUnification", kind: boolean, def: "false", status: works, reload: true, note: "clientPort accepts TLS and plain connections",
		field: func(c *Config) any { return &c.Server.PortUnification }},
	{name: "netty.server.outstandingHandshake.limit", aliases: []string{"outstandingHandshake.limit"}, kind: property32(-1, maxInt), def: "250", status: works, reload: true, note: "TLS handshakes under way; -1, 0 (ZooKeeper's default): no bound",
		field: func(c *Config) any { return orNone(&c.Server.HandshakeLimit, 1) }},
	{name: "X509AuthenticationProvider.superUser", kind: orEmpty(text), status: works, reload: true, note: "the superuser's x509 identity",
		field: func(c *Config) any { return &c.Server.Auth.X509.SuperUser }},
	{name: "gozkd.x509.id", kind: oneOf("subject", "cn", "san:uri", "san:dns", "san:email"), def: "subject", status: works, reload: true, note: "identity in a client's certificate: subject, common name, or the only alternative name of that type",
		field: func(c *Config) any { return &c.X509ID }},
	{name: "client.certReload", kind: boolean, def: "false", status: harmless, note: "always on, within two seconds"},
	{name: "netty.server.earlyDropSecureConnectionHandshakes", kind: boolean, status: harmless, note: "always on"},
	{name: "serverCnxnFactory", kind: anything, status: harmless, note: "a class of the Java server"},
}

// tlsKeys returns the rows of tlsconf.Options below a prefix. What is wrong with one of them
// prevents the start only if TLS with these options is served: see groupProblems.
func tlsKeys(prefix string, hosts bool, get func(*Config) *tlsconf.Options) []key {
	row := func(name string, k kind, def, note string, field func(*tlsconf.Options) any, aliases ...string) key {
		return key{name: prefix + name, group: prefix, aliases: aliases, kind: k, def: def, status: works, reload: true, note: note,
			field: func(c *Config) any { return field(get(c)) }, secret: k.hidden}
	}
	other := func(name string, k kind, s status, note string, fine ...string) key {
		return key{name: prefix + name, group: prefix, kind: k, status: s, note: note, fine: fine}
	}
	gozkd := func(name string) []string {
		if prefix == clientTLS {
			return []string{"gozkd.tls." + name}
		}
		return nil
	}
	rows := []key{
		row("keyStore.location", orEmpty(text), "", "file with this server's key and certificate: JKS, PKCS12 or PEM; required for TLS", func(o *tlsconf.Options) any { return &o.KeyStore.Location }, gozkd("cert")...),
		row("keyStore.password", password, "", "password of that store", func(o *tlsconf.Options) any { return &o.KeyStore.Password }),
		row("keyStore.passwordPath", orEmpty(text), "", "file with that password; wins over `.password`", func(o *tlsconf.Options) any { return &o.KeyStore.PasswordFile }),
		row("keyStore.type", orEmpty(oneOf("JKS", "PKCS12", "PEM", "BCFKS")), "", "no effect: the file's content decides; BCFKS is refused", func(o *tlsconf.Options) any { return &o.KeyStore.Type }),
		row("trustStore.location", orEmpty(text), "", "file with the authorities of callers' certificates; required unless clientAuth is none", func(o *tlsconf.Options) any { return &o.TrustStore.Location }, gozkd("ca")...),
		row("trustStore.password", password, "", "password of that store", func(o *tlsconf.Options) any { return &o.TrustStore.Password }),
		row("trustStore.passwordPath", orEmpty(text), "", "file with that password; wins over `.password`", func(o *tlsconf.Options) any { return &o.TrustStore.PasswordFile }),
		row("trustStore.type", orEmpty(oneOf("JKS", "PKCS12", "PEM", "BCFKS")), "", "no effect: the file's content decides; BCFKS is refused", func(o *tlsconf.Options) any { return &o.TrustStore.Type }),
		row("protocol", orEmpty(protocol), "TLS", "the only TLS version, unless enabledProtocols is set; TLS: both", func(o *tlsconf.Options) any { return &o.Protocol }),
		row("enabledProtocols", orEmpty(protocols), "both", "versions of TLS", func(o *tlsconf.Options) any { return &o.EnabledProtocols }),
		row("ciphersuites", orEmpty(suites), "Go's choice", "IANA names. A list without a TLS 1.3 suite disables TLS 1.3", func(o *tlsconf.Options) any { return &o.CipherSuites }),
		row("clientAuth", orEmpty(oneOf(tlsconf.Need, tlsconf.Want, tlsconf.None)), tlsconf.Need, "need: callers need a certificate; want: any certificate is verified; none: not requested", func(o *tlsconf.Options) any { return &o.ClientAuth }),
		row("hostnameVerification", boolean, "true", "a server's certificate must name the dialed host; false also turns clientHostnameVerification off", func(o *tlsconf.Options) any { return &o.HostnameVerification }),
		row("clientHostnameVerification", boolean, strconv.FormatBool(hosts), "a caller's certificate must name its address", func(o *tlsconf.Options) any { return &o.ClientHostnameVerification }),
		row("allowReverseDnsLookup", boolean, "false", "with clientHostnameVerification, a certificate may name the DNS name of the caller's address instead, if that name resolves back", func(o *tlsconf.Options) any { return &o.ReverseDNS }),
		row("crl", boolean, "false", "certificates revoked by crlLocation's lists, or without a current list, are refused", func(o *tlsconf.Options) any { return &o.CRL }),
		row("ocsp", boolean, "false", "true prevents the start: use revocation lists", func(o *tlsconf.Options) any { return &o.OCSP }),
		other("context.supplier.class", text, refused, "a class of the Java server"),
		other("sslProvider", text, refused, "the TLS implementation is Go's", "JDK", "OPENSSL", "OPENSSL_REFCNT"),
		other("authProvider", text, refused, "a class of the Java server", "x509"),
		other("handshakeDetectionTimeoutMillis", anything, harmless, "use nio.sessionlessCnxnTimeout"),
		other("client.*", anything, harmless, "a property of the Java client"),
		other("*", anything, refused, "not a key of ZooKeeper 3.9, perhaps of security"),
	}
	rows[len(rows)-1].secret = true // a password, if a letter of its key is wrong
	crl := row("crlLocation", text, "", "file or directory with revocation lists, PEM or DER", func(o *tlsconf.Options) any { return &o.CRLLocation })
	crl.name = "gozkd." + crl.name
	bare := row("key", text, "", "PEM file with the key, if the key store has only certificates", func(o *tlsconf.Options) any { return &o.KeyStore.Key })
	bare.name = "gozkd." + strings.Replace(prefix, "ssl", "tls", 1) + "key"
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
	_, given := r.won["clientPort"]
	c.SecureOnly = c.SecureClientPort != 0 && !given && !c.Server.PortUnification && !r.ownPort
	if err := c.ClientTLS.Check(); err != nil {
		w := r.won["secureClientPort"]
		if c.SecureClientPort == 0 {
			w = r.won["client.portUnification"]
		}
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
	return net.JoinHostPort(anyHost(c.SecureClientPortAddress), strconv.Itoa(c.SecureClientPort))
}
