package config

import (
	"strings"
	"testing"
)

// Without sslQuorum and portUnification the keys ssl.quorum.* have no effect, whatever they say.
// With one of them a key that can't be honoured prevents the start, and one that weakens the checks
// warns.
func TestLoad_PeerTLS(t *testing.T) {
	const members = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1\n"
	const stores = "ssl.quorum.keyStore.location=k.pem\nssl.quorum.trustStore.location=t.pem\n"
	for _, c := range []struct {
		lines   string
		serves  bool
		problem string
		warning string
	}{
		{lines: "sslQuorum=true"}, // standalone
		{lines: members + stores + "ssl.quorum.context.supplier.class=x", warning: "ssl.quorum.keyStore.location: k.pem has no effect without sslQuorum or portUnification"},
		{lines: members + stores + "admin.forceHttps=true"},
		{lines: members + "portUnification=true", warning: "portUnification: true has no effect: ssl.quorum.keyStore.location is not set"},
		{lines: members + stores + "portUnification=true", serves: true},
		{lines: members + stores + "sslQuorum=true\nportUnification=true", serves: true},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.clientAuth=NEED\nssl.quorum.handshakeDetectionTimeoutMillis=700", serves: true},
		{lines: members + "sslQuorum=true", problem: "sslQuorum: is true, and ssl.quorum.keyStore.location is not set: name a file"},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.ocsp=true", problem: "ssl.quorum.ocsp=true is not supported"},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.context.supplier.class=x", problem: `ssl.quorum.context.supplier.class: is "x", which this version does not support`},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.sslProvider=OPENSSL", serves: true},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.something=x", serves: true, warning: "ssl.quorum.something: (hidden) has no effect"},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.clr=true", problem: "ssl.quorum.clr: is not a key of gozkd; did you mean ssl.quorum.crl?"},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.hostnameVerification=false", serves: true, warning: "the certificates are not compared with the server lines"},
		{lines: members + stores + "sslQuorum=true\nssl.quorum.clientAuth=want", serves: true, warning: "servers without a certificate are not refused"},
	} {
		inv, err := in(t, "dataDir=d\n"+c.lines, nil)
		switch {
		case c.problem != "":
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v, want %s", c.lines, err, c.problem)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.lines, err)
			continue
		}
		if got := strings.Join(inv.Warnings, "; "); !strings.Contains(got, c.warning) || c.warning == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", c.lines, got, c.warning)
		}
		if got := inv.Config.ServesPeerTLS(); got != c.serves {
			t.Errorf("%s: serves TLS to other servers: %t", c.lines, got)
		}
	}
}
