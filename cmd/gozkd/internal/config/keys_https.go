package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/internal/x509name"
	"github.com/gozkd/gozkd/server/identity"
)

// metricsTLS is the prefix of the keys of TLS for metrics. As in ZooKeeper, the admin server has
// the stores of TLS between servers.
const metricsTLS = "metricsProvider.ssl."

var certificateNames = kind{allowed: "names in certificates, separated by ;", parse: text.parse}

func adminTLSKeys(c *Config) []key {
	return []key{
		row("admin.portUnification", boolean, "false", &c.AdminUnified,
			"admin.serverPort also accepts HTTPS, with the key store of `ssl.quorum.*`"),
		row("admin.forceHttps", boolean, "false", &c.AdminForceHTTPS, "admin.serverPort accepts only HTTPS"),
		live("admin.needClientAuth", boolean, "false", &c.AdminNeedCert,
			"callers by HTTPS need a certificate for the trust store of `ssl.quorum.*`"),
		live("gozkd.admin.x509", certificateNames, "", &c.AdminX509,
			"x509 identities of [administrators](monitoring.md#authorization); `\\\\;` within a name"),
	}
}

// metricsTLSKeys returns the TLS keys of the metrics endpoint, which has only some of the keys of
// tlsconf.Options. The row with the star refuses the others.
func metricsTLSKeys(c *Config) []key {
	stores := slices.DeleteFunc(tlsKeys(metricsTLS, false, &c.MetricsTLS), func(k key) bool {
		name, ours := strings.CutPrefix(k.name, metricsTLS)
		store := strings.HasPrefix(name, "keyStore.") || strings.HasPrefix(name, "trustStore.")
		return !ours || !store && !slices.Contains([]string{"enabledProtocols", "ciphersuites"}, name)
	})
	return append([]key{
		row("metricsProvider.httpsPort", integer(-1, 65535), "-1", &c.MetricsHTTPSPort,
			"port for Prometheus with HTTPS; -1: none. With it, httpPort is open only if set; equal to it, the port serves both").of(metricsKeys),
		live(metricsTLS+"need.client.auth", boolean, "true", &c.MetricsNeedCert,
			"callers by HTTPS need a certificate for the trust store").of(metricsTLS),
		{name: metricsTLS + "*", group: metricsTLS, kind: anything, status: refused, note: "not a key of ZooKeeper 3.10, perhaps of security", secret: true},
		live(metricsTLS+"want.client.auth", boolean, "true", &c.MetricsWantCert,
			"any caller's certificate is verified; needs a trust store").of(metricsTLS),
	}, stores...)
}

func (r *resolver) https(c *Config) {
	if _, given := r.won["metricsProvider.httpPort"]; !given && c.MetricsHTTPSPort >= 0 {
		c.MetricsPort = -1
	}
	if o, ok := c.AdminTLS(); ok && c.AdminEnabled {
		if err := o.Check(); err != nil {
			w := r.firstOn("admin.forceHttps", "admin.portUnification")
			r.problem(w.from, w.key, "is true, and %v", err)
		}
	} else if w, needs := r.won["admin.needClientAuth"]; needs && c.AdminNeedCert && c.AdminEnabled {
		r.warn(w.from, w.key, "true has no effect, because no admin port speaks TLS: set admin.forceHttps=true")
	}
	if w, needs := r.won["admin.needClientAuth"]; needs && c.AdminNeedCert && c.AdminEnabled && c.AdminUnified && !c.AdminForceHTTPS {
		r.warn(w.from, w.key, "true concerns HTTPS only: admin.portUnification also accepts plain HTTP; set admin.forceHttps=true")
	}
	o, ok := c.MetricsTLSOptions()
	r.groupProblems(metricsTLS, ok, noTLS)
	r.groupProblems(metricsKeys, c.Prometheus(), "metricsProvider.className is not "+prometheusProvider)
	if ok {
		if err := o.Check(); err != nil {
			w := r.won["metricsProvider.httpsPort"]
			r.problem(w.from, w.key, "is %s, and %v", w.value, err)
		}
		if c.MetricsPort == c.MetricsHTTPSPort && c.MetricsNeedCert {
			w := r.won["metricsProvider.httpsPort"]
			r.warn(w.from, w.key, "is also the port for plain HTTP, for which no certificate is needed: set another metricsProvider.httpPort, or none")
		}
	}
	r.noEffect(!ok, metricsTLS+"keyStore.location", " without metricsProvider.httpsPort and the class "+prometheusProvider+": the metrics are not encrypted")
	r.noEffect(len(c.WebProxies) == 0, "gozkd.web.proxyHeader", ": gozkd.web.proxies lists no proxy that may use it")
}

// clientAuth returns the tlsconf.Options.ClientAuth of an HTTP endpoint.
func clientAuth(need, want bool, o *tlsconf.Options) string {
	switch {
	case need:
		return tlsconf.Need
	case want && o.TrustStore.Location != "":
		return tlsconf.Want
	}
	return tlsconf.None
}

// AdminTLS returns the TLS of the admin server. ok is false if it has none.
func (c Config) AdminTLS() (o tlsconf.Options, ok bool) {
	o = c.PeerTLS
	o.Prefix, o.Role, o.ClientHostnameVerification = peerTLS, tlsconf.Server, false
	o.Ports = fmt.Sprint("admin.serverPort ", c.AdminPort)
	// Without identities that need a certificate, a browser must not ask its user for one.
	wanted := len(c.AdminIdentities()) > 0 || strings.Contains(c.WebRoles, "x509:")
	o.ClientAuth = clientAuth(c.AdminNeedCert, wanted, &o)
	return o, c.AdminUnified || c.AdminForceHTTPS
}

// AdminIdentities returns the x509 identities of administrators.
func (c Config) AdminIdentities() []string {
	ids := webrole.Split(c.AdminX509)
	if super := strings.TrimSpace(c.Server.Auth.X509.SuperUser); super != "" {
		ids = append(ids, super)
	}
	return ids
}

// identities checks the identities of the superuser, with which ZooKeeper starts in any case, of
// administrators, and of callers of REST: the length of digests, and names that are compared with
// the subjects of certificates, unless gozkd.x509.id lets them be any text.
func (r *resolver) identities(c *Config) {
	check := func(key, scheme, id string, add func(from Origin, key, format string, args ...any)) {
		user, hash, _ := strings.Cut(id, ":")
		switch w := r.won[key]; {
		case scheme == "digest" && !identity.IsDigest(hash, c.Server.DigestAlgorithm):
			add(w.from, w.key, "has a digest of %s that is not as long as one by %s, so no password fits: "+
				"write user:base64 of the digest of user:password", user, c.Server.DigestAlgorithm)
		case scheme == "x509" && c.X509ID == "subject" && !x509name.Valid(id):
			add(w.from, w.key, "names %q, which is the subject of no certificate; allowed: a subject such as "+
				"CN=admin,O=Example, without spaces between its parts, or any name with another gozkd.x509.id", id)
		}
	}
	if c.Server.SuperDigest != "" {
		check("DigestAuthenticationProvider.superDigest", "digest", c.Server.SuperDigest, r.warn)
	}
	if c.Server.Auth.X509.SuperUser != "" {
		check("X509AuthenticationProvider.superUser", "x509", c.Server.Auth.X509.SuperUser, r.warn)
	}
	for _, name := range webrole.Split(c.AdminX509) {
		check("gozkd.admin.x509", "x509", name, r.problem)
	}
	for _, role := range slices.Sorted(maps.Keys(c.Roles())) {
		scheme, id, _ := strings.Cut(role, ":")
		check("gozkd.web.roles", scheme, id, r.problem)
	}
}

// MetricsTLSOptions returns the TLS of the HTTPS port for metrics. ok is false if there is none.
func (c Config) MetricsTLSOptions() (o tlsconf.Options, ok bool) {
	o = c.MetricsTLS
	o.Prefix, o.Role = metricsTLS, tlsconf.Server
	o.Ports = fmt.Sprint("metricsProvider.httpsPort ", c.MetricsHTTPSPort)
	o.ClientAuth = clientAuth(c.MetricsNeedCert, c.MetricsWantCert, &o)
	return o, c.Prometheus() && c.MetricsHTTPSPort >= 0
}
