package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// secured is a zoo.cfg with a port for TLS, without a plain one.
const secured = `dataDir=/d
secureClientPort=2281
ssl.keyStore.location=/k.jks
ssl.keyStore.password=planted-1
ssl.trustStore.location=/t.jks
ssl.trustStore.password=planted-2
`

func TestTLS_Keys(t *testing.T) {
	c := good(t, secured+"clientPort=2181\nssl.clientAuth=WANT\nssl.enabledProtocols=TLSv1.3, TLSv1.2\nssl.ciphersuites=A,B\ngozkd.ssl.crlLocation=/crl\nssl.crl=true\n", nil).Config
	want := tlsconf.Options{
		Prefix: "ssl.", KeyStore: tlsconf.Store{Location: "/k.jks", Password: "planted-1"}, TrustStore: tlsconf.Store{Location: "/t.jks", Password: "planted-2"},
		ClientAuth: tlsconf.Want, HostnameVerification: true, CRL: true, CRLLocation: "/crl",
	}
	got := c.ClientTLS
	protocols, suites := strings.Join(got.EnabledProtocols, " "), strings.Join(got.CipherSuites, " ")
	got.EnabledProtocols, got.CipherSuites = nil, nil
	if got.KeyStore != want.KeyStore || got.TrustStore != want.TrustStore || got.ClientAuth != want.ClientAuth || got.CRLLocation != want.CRLLocation ||
		!got.CRL || !got.HostnameVerification || got.ClientHostnameVerification || got.Prefix != want.Prefix || protocols != "TLSv1.3 TLSv1.2" || suites != "A B" {
		t.Errorf("%+v", got)
	}
	if c.SecureListenAddress() != ":2281" || c.SecureOnly || !c.ServesTLS() {
		t.Errorf("%s, %v", c.SecureListenAddress(), c.SecureOnly)
	}
}

func TestTLS_Aliases(t *testing.T) {
	c := good(t, "dataDir=/d\nclient.portUnification=true\ngozkd.tls.cert=/c.pem\ngozkd.tls.key=/k.pem\ngozkd.tls.ca=/ca.pem\n", nil).Config
	if k := (tlsconf.Store{Location: "/c.pem", Key: "/k.pem"}); c.ClientTLS.KeyStore != k || c.ClientTLS.TrustStore.Location != "/ca.pem" || c.SecureListenAddress() != "" {
		t.Errorf("%+v", c.ClientTLS)
	}
}

// TestTLS_SecureOnly: as in ZooKeeper, a server without clientPort has no plain port if it has a
// secure one.
func TestTLS_SecureOnly(t *testing.T) {
	for more, want := range map[string]bool{
		"": true, "clientPort=2181\n": false, "client.portUnification=true\n": false,
		"clientPort=0\n": true, "clientPort=0\nclient.portUnification=true\n": false,
		"clientPort=0\nserver.1=a:1:2;2181\n": false, "clientPort=0\nserver.1=a:1:2\n": true,
		"server.1=a:1:2;2181\n": false, "server.1=a:1:2\n": true,
		"myid=1\nserver.1=a:1:2\nserver.2=b:1:2;5\nserver.3=c:1:2;5\n": true,
		"myid=2\nserver.1=a:1:2\nserver.2=b:1:2;5\nserver.3=c:1:2;5\n": false,
	} {
		if c := good(t, secured+more, nil).Config; c.SecureOnly != want {
			t.Errorf("%q: %v", more, c.SecureOnly)
		}
	}
	if c := good(t, secured, nil, "--client-port", "0").Config; c.SecureOnly {
		t.Error("port 0 of a flag is any free port")
	}
}

func TestTLS_Problems(t *testing.T) {
	for more, want := range map[string]string{
		"ssl.ocsp=true":                        "ssl.ocsp=true is not supported",
		"ssl.crl=true":                         "gozkd.ssl.crlLocation is not set",
		"ssl.keyStore.type=bcfks":              "BCFKS is not supported",
		"ssl.enabledProtocols=TLSv1.2,TLSv1.4": "ssl.enabledProtocols: is",
		"ssl.protocol=TLSv1.4":                 "ssl.protocol: is",
		"ssl.context.supplier.class=com.Foo":   "ssl.context.supplier.class: is",
		"ssl.sslProvider=com.Foo":              "ssl.sslProvider: is",
		"gozkd.x509.id=o":                      "gozkd.x509.id: is",
		// A password whose key has a wrong letter must not be in the log.
		"ssl.keystore.password=planted": "ssl.keystore.password: is not a key of gozkd; did you mean",
		"ssl.trustStore.passwd=planted": "ssl.trustStore.passwd: is not a key of gozkd; did you mean",
		"metricsProvider.className=" + prometheusProvider + "\nmetricsProvider.httpsPort=0\nmetricsProvider.ssl.keystore.password=planted": "metricsProvider.ssl.keystore.password: is not a key of gozkd; did you mean",
		"sslQuorum=true\nssl.quorum.keystore.password=planted\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1":                     "ssl.quorum.keystore.password: is not a key of gozkd; did you mean",
	} {
		got := strings.Join(problems(t, secured+more+"\n", nil), "\n")
		if !strings.Contains(got, want) || strings.Contains(got, "planted") {
			t.Errorf("%s: %s", more, got)
		}
	}
	wantLines(t, problems(t, "dataDir=/d\nsecureClientPortAddress=a\n", nil), "zoo.cfg:2: secureClientPortAddress: is a, but secureClientPort is not set")
	if got := strings.Join(problems(t, secured, nil, "--ensemble", "3"), "\n"); !strings.Contains(got, "its members serve no TLS") {
		t.Errorf("%s", got)
	}
}

// Java's usual values, and versions that are too old, start with TLS too: TLS is Java's name of the
// default, and what is left out would only weaken the connections.
func TestTLS_JavasVersions(t *testing.T) {
	const peers = "sslQuorum=true\nssl.quorum.keyStore.location=/k\nssl.quorum.trustStore.location=/t\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1\n"
	for line, want := range map[string]string{ // protocol, versions, and the beginning of the warning
		"protocol=TLS":                      "TLS",
		"protocol=TLSv1.1":                  "TLS, protocol: is TLSv1.1; TLS is used",
		"protocol=SSL":                      "TLS, protocol: is SSL; TLS is used",
		"protocol=":                         `, protocol: is "", which has no effect`,
		"enabledProtocols=TLSv1.1,TLSv1.2":  " TLSv1.2, enabledProtocols: is TLSv1.1,TLSv1.2; TLSv1.2 is used",
		"enabledProtocols=TLSv1,TLSv1.1":    " TLSv1.2 TLSv1.3, enabledProtocols: is TLSv1,TLSv1.1; TLSv1.2,TLSv1.3 is used",
		"enabledProtocols=TLSv1.3, TLSv1.2": " TLSv1.3 TLSv1.2",
		"ciphersuites=":                     `, ciphersuites: is "", which has no effect`,
		"client.enable=true":                "",
	} {
		for prefix, options := range map[string]func(*Config) tlsconf.Options{
			clientTLS: func(c *Config) tlsconf.Options { return c.ClientTLS },
			peerTLS:   func(c *Config) tlsconf.Options { return c.PeerTLS },
		} {
			inv := good(t, secured+peers+prefix+line+"\n", nil)
			o := options(&inv.Config)
			got := strings.Join(append([]string{o.Protocol}, o.EnabledProtocols...), " ")
			if len(inv.Warnings) > 0 {
				_, warning, _ := strings.Cut(inv.Warnings[0], prefix)
				got += ", " + warning
			}
			if !strings.HasPrefix(got, want) || (len(inv.Warnings) > 0) != strings.Contains(want, ": ") {
				t.Errorf("%s%s: %s; warnings %q", prefix, line, got, inv.Warnings)
			}
		}
	}
}

// What is wrong with a key of TLS prevents the start only where TLS with these keys is served.
func TestTLS_KeysWithoutTLS(t *testing.T) {
	const stores = "PREFIXkeyStore.location=/k\nPREFIXtrustStore.location=/t\n"
	served := map[string]string{
		clientTLS:  "client.portUnification=true\n" + stores,
		peerTLS:    "sslQuorum=true\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1\n" + stores,
		metricsTLS: "metricsProvider.httpsPort=0\nmetricsProvider.className=" + prometheusProvider + "\n" + stores,
	}
	for prefix, serve := range served {
		for _, line := range []string{"enabledProtocols=TLSv1.4", "keyStore.type=p12", "keystore.password=planted", "context.supplier.class=org.example.Supplier"} {
			line = prefix + line
			inv := good(t, "dataDir=/d\n"+line+"\n", nil)
			if got := strings.Join(inv.Warnings, "\n"); !strings.Contains(got, "it has no effect, because TLS with these keys is not served") || strings.Contains(got, "planted") {
				t.Errorf("%s: warnings %q", line, got)
			}
			key, _, _ := strings.Cut(line, "=")
			if got := strings.Join(problems(t, "dataDir=/d\n"+line+"\n"+strings.ReplaceAll(serve, "PREFIX", prefix), nil), "\n"); !strings.Contains(got, key+": is ") || strings.Contains(got, "planted") {
				t.Errorf("%s where TLS is served: %q", line, got)
			}
		}
	}
}

func TestTLS_WithoutAPort(t *testing.T) {
	inv := good(t, "dataDir=/d\nssl.sslProvider=JDK\nssl.keyStore.location=/k\nssl.keyStore.password=planted\nssl.quorum.keyStore.password=planted\n", nil)
	wantLines(t, inv.Warnings, "zoo.cfg:3: ssl.keyStore.location: has no effect without secureClientPort or client.portUnification")
}

// TestTLS_ReadsBack: all but the passwords, which are shown nowhere.
func TestTLS_ReadsBack(t *testing.T) {
	c := good(t, secured+"gozkd.x509.id=san:uri\nssl.protocol=TLSv1.3\n", nil).Config
	text := c.String()
	if strings.Contains(text, "planted") || !strings.Contains(text, "# ssl.keyStore.password=(hidden)\n") || strings.Contains(text, "clientPort=2181") {
		t.Errorf("%s", text)
	}
	file := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again := good(t, "", nil, file).Config
	if reload, restart := c.Changes(again); len(restart) > 0 || strings.Join(reload, " ") != "ssl.keyStore.password ssl.trustStore.password" || !again.SecureOnly {
		t.Errorf("%v, %v", reload, restart)
	}
}

func TestContainer_TLS(t *testing.T) {
	env := inImage(t, map[string]string{
		"ZOO_TLS_CLIENT_ENABLE": "true", "ZOO_TLS_CLIENT_KEYSTORE_FILE": "/k.jks", "ZOO_TLS_CLIENT_KEYSTORE_PASSWORD": "p", "ZOO_TLS_CLIENT_TRUSTSTORE_FILE": "/t.jks",
	})
	if c := good(t, "", env).Config; c.SecureClientPort != 3181 || c.ClientTLS.KeyStore.Location != "/k.jks" || c.ClientTLS.TrustStore.Location != "/t.jks" || c.SecureOnly {
		t.Errorf("%d %+v", c.SecureClientPort, c.ClientTLS)
	}
	delete(env, "ZOO_TLS_CLIENT_ENABLE")
	if c := good(t, "", env).Config; c.ServesTLS() || c.ClientTLS.KeyStore.Location != "" {
		t.Errorf("%+v", c.ClientTLS)
	}
}

// ZooKeeper starts with any key. One that may be a mistyped key of security prevents the start.
func TestLoad_UnknownTLSKeys(t *testing.T) {
	const served = "dataDir=/d\nsecureClientPort=2281\nssl.keyStore.location=/k.pem\nssl.clientAuth=none\n"
	inv := good(t, served+"ssl.provider.of.a.vendor=fast\nssl.quorum.later.version.key=1\n", nil)
	wantLines(t, inv.Warnings,
		"zoo.cfg:5: ssl.provider.of.a.vendor: (hidden) has no effect: not a key of ZooKeeper 3.9",
		"zoo.cfg:6: ssl.quorum.later.version.key: (hidden) has no effect: not a key of ZooKeeper 3.9")
	wantLines(t, problems(t, served+"ssl.clr=true\nssl.keystore.location=/k.jks\n", nil),
		"zoo.cfg:5: ssl.clr: is not a key of gozkd; did you mean ssl.crl?",
		"zoo.cfg:6: ssl.keystore.location: is not a key of gozkd; did you mean ssl.keyStore.location?")
}
