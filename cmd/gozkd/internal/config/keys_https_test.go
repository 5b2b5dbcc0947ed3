package config

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

const quorumStores = "ssl.quorum.keyStore.location=/k.pem\nssl.quorum.keyStore.password=planted\nssl.quorum.trustStore.location=/t.pem\nssl.quorum.enabledProtocols=TLSv1.3\n"

// TestAdminTLS_Options checks what the admin server's TLS is made of.
func TestAdminTLS_Options(t *testing.T) {
	for _, c := range []struct {
		keys string
		ok   bool
		auth string
	}{
		{"", false, tlsconf.None},
		{"admin.portUnification=true\n", true, tlsconf.None},
		{"admin.forceHttps=true\n", true, tlsconf.None},
		{"admin.forceHttps=true\nadmin.needClientAuth=true\n", true, tlsconf.Need},
		{"admin.forceHttps=true\ngozkd.admin.x509=CN=a,O=x; CN=b\n", true, tlsconf.Want},
	} {
		inv := good(t, "dataDir=/d\n"+quorumStores+c.keys, nil)
		o, ok := inv.Config.AdminTLS()
		if ok != c.ok || o.ClientAuth != c.auth || o.KeyStore.Location != "/k.pem" || o.KeyStore.Password != "planted" || o.TrustStore.Location != "/t.pem" ||
			len(o.EnabledProtocols) != 1 || o.Role != tlsconf.Server || o.ClientHostnameVerification {
			t.Errorf("%q: %t %+v", c.keys, ok, o)
		}
		if strings.Contains(inv.Config.String(), "planted") {
			t.Errorf("%s", inv.Config)
		}
	}
	c := good(t, "dataDir=/d\ngozkd.admin.x509=CN=a,O=x; CN=b\\\\;c\\\\\\\\;CN=d;\nX509AuthenticationProvider.superUser=CN=root\n", nil).Config
	if got := strings.Join(c.AdminIdentities(), "|"); got != `CN=a,O=x|CN=b\;c\\|CN=d|CN=root` {
		t.Errorf("identities %s", got)
	}
	wantLines(t, problems(t, "dataDir=/d\nDigestAuthenticationProvider.digestAlg=SHA-256\ngozkd.web.roles=read=digest:bob:D/InIHSb7yEEbrWz8b9l71RjZJU=\n", nil),
		"zoo.cfg:3: gozkd.web.roles: has a digest of bob that is not as long as one by SHA-256, so no password fits: write user:base64 of the digest of user:password")
	const odd, why = "admin, O=x", ` names "CN=admin, O=x", which is the subject of no certificate; allowed: a subject such as CN=admin,O=Example`
	for key, value := range map[string]string{"X509AuthenticationProvider.superUser": "CN=" + odd, "gozkd.admin.x509": "CN=a;CN=" + odd, "gozkd.web.roles": "read=x509:CN=" + odd} {
		var inv loaded
		got, file := "", "dataDir=/d\n"+key+"="+value+"\n"
		if key == "X509AuthenticationProvider.superUser" { // ZooKeeper starts with it
			got = strings.Join(good(t, file, nil).Warnings, "")
		} else {
			got = strings.Join(problems(t, file, nil), "")
		}
		if inv = good(t, file+"gozkd.x509.id=cn\n", nil); !strings.HasPrefix(got, "zoo.cfg:2: "+key+":"+why) || len(inv.Warnings) > 0 {
			t.Errorf("%s: %q; with any text as names %q", key, got, inv.Warnings)
		}
	}
}

// TestMetricsTLS_Options checks what the TLS of metrics is made of, and which ports are open.
func TestMetricsTLS_Options(t *testing.T) {
	const base = "dataDir=/d\nmetricsProvider.className=" + prometheusProvider + "\n"
	const stores = "metricsProvider.ssl.keyStore.location=/k.pem\nmetricsProvider.ssl.trustStore.location=/t.pem\nmetricsProvider.ssl.ciphersuites=TLS_AES_128_GCM_SHA256\n"
	for _, c := range []struct {
		keys string
		ok   bool
		port int
		auth string
	}{
		{"", false, 7000, tlsconf.Need},
		{"metricsProvider.httpsPort=7001\n", true, -1, tlsconf.Need},
		{"metricsProvider.httpsPort=7001\nmetricsProvider.httpPort=7002\n", true, 7002, tlsconf.Need},
		{"metricsProvider.httpsPort=0\nmetricsProvider.ssl.need.client.auth=false\n", true, -1, tlsconf.Want},
		{"metricsProvider.httpsPort=0\nmetricsProvider.ssl.need.client.auth=false\nmetricsProvider.ssl.want.client.auth=false\n", true, -1, tlsconf.None},
	} {
		got := good(t, base+stores+c.keys, nil).Config
		o, ok := got.MetricsTLSOptions()
		if ok != c.ok || got.MetricsPort != c.port || o.ClientAuth != c.auth || o.KeyStore.Location != "/k.pem" || o.TrustStore.Location != "/t.pem" || len(o.CipherSuites) != 1 {
			t.Errorf("%q: %t, HTTP port %d, %+v", c.keys, ok, got.MetricsPort, o)
		}
	}
}

// TestHTTPS_Problems checks that an endpoint without what it needs prevents the start.
func TestHTTPS_Problems(t *testing.T) {
	const metricsPort = "metricsProvider.className=" + prometheusProvider + "\nmetricsProvider.httpsPort=7001\n"
	for keys, want := range map[string]string{
		"admin.forceHttps=true":                                                                 "admin.forceHttps: is true, and ssl.quorum.keyStore.location is not set",
		"admin.portUnification=true":                                                            "admin.portUnification: is true, and ssl.quorum.keyStore.location",
		metricsPort + "metricsProvider.ssl.clientAuth=none":                                     "metricsProvider.ssl.clientAuth: is",
		metricsPort + "metricsProvider.ssl.context.supplier.class=a.B":                          "metricsProvider.ssl.context.supplier.class: is",
		"admin.forceHttps=true\nadmin.needClientAuth=true\nssl.quorum.keyStore.location=/k.pem": "ssl.quorum.trustStore.location is not set",
		metricsPort: "metricsProvider.httpsPort: is 7001, and metricsProvider.ssl.keyStore.location is not set",
	} {
		if got := strings.Join(problems(t, "dataDir=/d\n"+keys+"\n", nil), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", keys, got)
		}
	}
}

// metricsStores make the metrics encrypted, with certificates of clients.
const metricsStores = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\nmetricsProvider.httpsPort=7000\n" +
	"metricsProvider.ssl.keyStore.location=/k.pem\nmetricsProvider.ssl.trustStore.location=/t.pem\n"

// TestHTTPS_Warnings checks that an operator is told of TLS that is configured, and not in force.
func TestHTTPS_Warnings(t *testing.T) {
	for keys, want := range map[string]string{
		"metricsProvider.ssl.keyStore.location=/k.pem":                         "metricsProvider.ssl.keyStore.location: /k.pem has no effect without metricsProvider.httpsPort",
		"admin.needClientAuth=true":                                            "admin.needClientAuth: true has no effect, because no admin port speaks TLS",
		quorumStores + "admin.portUnification=true\nadmin.needClientAuth=true": "admin.needClientAuth: true concerns HTTPS only: admin.portUnification also accepts plain HTTP",
		quorumStores + "admin.forceHttps=true\nadmin.needClientAuth=true":      "",
		quorumStores + "admin.portUnification=true":                            "",
		metricsStores + "metricsProvider.httpPort=7000":                        "metricsProvider.httpsPort: is also the port for plain HTTP, for which no certificate is needed",
		metricsStores + "metricsProvider.httpPort=7001":                        "",
	} {
		got := strings.Join(good(t, "dataDir=/d\n"+keys+"\n", nil).Warnings, "\n")
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", keys, got)
		}
	}
}
