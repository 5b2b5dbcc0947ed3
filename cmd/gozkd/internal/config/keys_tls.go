package config

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/tlsconf"
)

// The prefixes of the keys of tlsconf.Options.
const clientTLS = "ssl."

var (
	// password may be empty. It is left out of Config.String.
	password = kind{
		allowed: "any password",
		parse:   func(v string) (string, bool) { return v, true },
		hidden:  true,
	}
	protocols = kind{
		allowed: "TLSv1.2 and TLSv1.3, separated by commas",
		parse: func(v string) (string, bool) {
			words := splitList(v)
			known := func(w string) bool { return w == "TLSv1.2" || w == "TLSv1.3" }
			return strings.Join(words, ","), len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !known(w) })
		},
	}
	suites = kind{
		allowed: "names such as TLS_AES_128_GCM_SHA256, separated by commas",
		parse:   wordList.parse,
	}
)

// portKeys open the ports for TLS, and say who its clients are.
var portKeys = []key{
	{name: "secureClientPort", kind: integer(0, 65535), def: "0", status: works, note: "[TLS](../guide/tls.md) port for clients, beside clientPort, or instead of it if clientPort is not set; 0 means none",
		field: func(c *Config) any { return &c.SecureClientPort }},
	{name: "secureClientPortAddress", kind: host, def: "all addresses", status: works, note: "address to listen on at secureClientPort",
		field: func(c *Config) any { return &c.SecureClientPortAddress }},
	{name: "client.portUnification", kind: boolean, def: "false", status: works, reload: true, note: "true: clientPort accepts both TLS and plain connections",
		field: func(c *Config) any { return &c.PortUnification }},
	{name: "netty.server.outstandingHandshake.limit", aliases: []string{"outstandingHandshake.limit"}, kind: property32(-1, maxInt), def: "250", status: works, reload: true, note: "bound on TLS handshakes under way; -1 or 0, ZooKeeper's default, means none",
		field: func(c *Config) any { return &c.HandshakeLimit }},
	{name: "X509AuthenticationProvider.superUser", kind: text, status: works, reload: true, note: "the identity x509 of the superuser, whom every ACL admits",
		field: func(c *Config) any { return &c.X509SuperUser }},
	{name: "gozkd.x509.id", kind: oneOf("subject", "cn", "san:uri", "san:dns", "san:email"), def: "subject", status: works, reload: true, note: "the part of a client's certificate that is its identity x509: the subject as Java prints it, its common name, or the only name of that type in the subject alternative name",
		field: func(c *Config) any { return &c.X509ID }},
	{name: "client.certReload", kind: boolean, def: "false", status: harmless, note: "changed files of keys, certificates and revocation lists are always noticed, within a second or two"},
	{name: "netty.server.earlyDropSecureConnectionHandshakes", kind: boolean, status: harmless, note: "a server that does not serve never begins a handshake"},
	{name: "serverCnxnFactory", kind: anything, status: harmless, note: "a class of the Java server; TLS needs none"},
}

// tlsKeys returns the rows of tlsconf.Options below a prefix.
func tlsKeys(prefix string, hosts bool, get func(*Config) *tlsconf.Options) []key {
	row := func(name string, k kind, def, note string, field func(*tlsconf.Options) any, aliases ...string) key {
		return key{name: prefix + name, aliases: aliases, kind: k, def: def, status: works, reload: true, note: note,
			field: func(c *Config) any { return field(get(c)) }, secret: k.hidden}
	}
	other := func(name string, k kind, s status, note string, fine ...string) key {
		return key{name: prefix + name, kind: k, status: s, note: note, fine: fine}
	}
	gozkd := func(name string) []string {
		if prefix == clientTLS {
			return []string{"gozkd.tls." + name}
		}
		return nil
	}
	rows := []key{
		row("keyStore.location", text, "", "file with the key and the certificate of this server: JKS, PKCS12 or PEM; required for TLS", func(o *tlsconf.Options) any { return &o.KeyStore.Location }, gozkd("cert")...),
		row("keyStore.password", password, "", "password of that store", func(o *tlsconf.Options) any { return &o.KeyStore.Password }),
		row("keyStore.passwordPath", text, "", "file with that password, which wins over `.password`; one line separator at its end is cut", func(o *tlsconf.Options) any { return &o.KeyStore.PasswordFile }),
		row("keyStore.type", oneOf("JKS", "PKCS12", "PEM", "BCFKS"), "", "without effect: the content of the file decides; BCFKS is refused", func(o *tlsconf.Options) any { return &o.KeyStore.Type }),
		row("trustStore.location", text, "", "file with the certificates of the authorities that callers' certificates must come from; required unless clientAuth is none", func(o *tlsconf.Options) any { return &o.TrustStore.Location }, gozkd("ca")...),
		row("trustStore.password", password, "", "password of that store", func(o *tlsconf.Options) any { return &o.TrustStore.Password }),
		row("trustStore.passwordPath", text, "", "file with that password, which wins over `.password`; one line separator at its end is cut", func(o *tlsconf.Options) any { return &o.TrustStore.PasswordFile }),
		row("trustStore.type", oneOf("JKS", "PKCS12", "PEM", "BCFKS"), "", "without effect: the content of the file decides; BCFKS is refused", func(o *tlsconf.Options) any { return &o.TrustStore.Type }),
		row("protocol", oneOf("TLSv1.2", "TLSv1.3"), "both", "the only version of TLS, unless enabledProtocols is set", func(o *tlsconf.Options) any { return &o.Protocol }),
		row("enabledProtocols", protocols, "both", "versions of TLS", func(o *tlsconf.Options) any { return &o.EnabledProtocols }),
		row("ciphersuites", suites, "Go's choice", "IANA names; suites that Go does not have give a warning. Those of TLS 1.3 cannot be chosen: a list with none of them disables TLS 1.3", func(o *tlsconf.Options) any { return &o.CipherSuites }),
		row("clientAuth", oneOf(tlsconf.Need, tlsconf.Want, tlsconf.None), tlsconf.Need, "need: callers without a certificate are refused; want: a certificate is verified if there is one; none: no certificate is asked for", func(o *tlsconf.Options) any { return &o.ClientAuth }),
		row("hostnameVerification", boolean, "true", "a server's certificate must name the host that is dialed; false also turns clientHostnameVerification off", func(o *tlsconf.Options) any { return &o.HostnameVerification }),
		row("clientHostnameVerification", boolean, strconv.FormatBool(hosts), "a caller's certificate must name the address that it calls from", func(o *tlsconf.Options) any { return &o.ClientHostnameVerification }),
		row("allowReverseDnsLookup", boolean, "false", "or a name that the DNS has for that address, and that resolves to it", func(o *tlsconf.Options) any { return &o.ReverseDNS }),
		row("crl", boolean, "false", "every certificate must be in a chain that the revocation lists of crlLocation cover and do not name; without a list that is up to date it is refused", func(o *tlsconf.Options) any { return &o.CRL }),
		row("ocsp", boolean, "false", "true prevents the start: OCSP is not supported, revocation lists are", func(o *tlsconf.Options) any { return &o.OCSP }),
		other("context.supplier.class", text, refused, "a class of the Java server"),
		other("sslProvider", text, refused, "the TLS implementation is Go's", "JDK", "OPENSSL", "OPENSSL_REFCNT"),
		other("authProvider", text, refused, "a class of the Java server", "x509"),
		other("handshakeDetectionTimeoutMillis", anything, harmless, "nio.sessionlessCnxnTimeout bounds the time for a handshake"),
		other("*", anything, refused, "not a key of ZooKeeper 3.9, and it may concern security"),
	}
	crl := row("crlLocation", text, "", "file or directory with revocation lists, PEM or DER, for "+prefix+"crl", func(o *tlsconf.Options) any { return &o.CRLLocation })
	crl.name = "gozkd." + crl.name
	bare := row("key", text, "", "PEM file with the key, if "+prefix+"keyStore.location has only certificates", func(o *tlsconf.Options) any { return &o.KeyStore.Key })
	bare.name = "gozkd." + strings.Replace(prefix, "ssl", "tls", 1) + "key"
	return append(rows, crl, bare)
}

// tls completes and checks the TLS of the client ports.
func (r *resolver) tls(c *Config) {
	c.ClientTLS.Prefix, c.ClientTLS.Role = clientTLS, tlsconf.Server
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
	c.SecureOnly = c.SecureClientPort != 0 && !given && !c.PortUnification && !r.ownPort
	if err := c.ClientTLS.Check(); err != nil {
		w := r.won["secureClientPort"]
		if c.SecureClientPort == 0 {
			w = r.won["client.portUnification"]
		}
		r.problem(w.from, w.key, "is %s, and %v", w.value, err)
	}
}

// ServesTLS reports whether clients can connect with TLS.
func (c Config) ServesTLS() bool { return c.SecureClientPort != 0 || c.PortUnification }

// SecureListenAddress returns the host:port for clients with TLS, or "".
func (c Config) SecureListenAddress() string {
	if c.SecureClientPort == 0 {
		return ""
	}
	return net.JoinHostPort(anyHost(c.SecureClientPortAddress), strconv.Itoa(c.SecureClientPort))
}
