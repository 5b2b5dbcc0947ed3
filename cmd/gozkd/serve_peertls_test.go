package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/server"
)

// sslQuorum and portUnification choose the mode of TLS between servers, at the start and at each
// reload. A configuration that can't be used changes nothing.
func TestPortTLS_StepsOfPeers(t *testing.T) {
	files := testca.New(t, "root").Issue(t, testca.Spec{Hosts: []string{"a"}}).Files(t)
	var ports portTLS
	defer ports.close()
	for _, c := range []struct {
		lines string
		mode  server.PeerTLSMode
	}{
		{"", server.PeerTLSOff},
		{"portUnification=true", server.PeerTLSAccepted},
		{"portUnification=true\nsslQuorum=true", server.PeerTLSDialed},
		{"sslQuorum=true\nssl.quorum.hostnameVerification=false\nssl.quorum.allowReverseDnsLookup=true\ngozkd.peer.tlsEnsemble=e", server.PeerTLSRequired},
		{"sslQuorum=true\nssl.quorum.clientHostnameVerification=false", server.PeerTLSRequired},
		{"", server.PeerTLSOff},
	} {
		text := "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1\ndataDir=d\nssl.quorum.keyStore.location=" + filepath.ToSlash(files.Key) +
			"\nssl.quorum.trustStore.location=" + filepath.ToSlash(files.CA) + "\n" + c.lines
		path := testca.WriteFile(t, filepath.Join(t.TempDir(), "zoo.cfg"), []byte(text))
		inv, err := config.Load([]string{"serve", path}, func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var cfg server.Config
		if err := ports.apply(inv.Config, &cfg); err != nil {
			t.Fatal(err)
		}
		got, o := cfg.PeerTLS, inv.Config.PeerTLS
		if err := got.Check(); err != nil || got.Mode != c.mode || cfg.TLS != nil {
			t.Errorf("%q: %v %v", c.lines, got.Mode, err)
		}
		if got.Mode != server.PeerTLSOff && (got.AnyHost == o.HostnameVerification || got.AnyCallerHost == o.ClientHostnameVerification || got.ReverseDNS != o.ReverseDNS ||
			got.Ensemble != inv.Config.PeerTLSEnsemble || got.DetectionTimeout != inv.Config.PeerTLSDetection) {
			t.Errorf("%q: %+v", c.lines, got)
		}
		bad := inv.Config
		bad.SSLQuorum, bad.PeerTLS.KeyStore.Location = true, "missing.pem"
		if err := ports.apply(bad, &cfg); err == nil {
			t.Error("a missing file is accepted")
		}
	}
}

// TestPortTLS_CertificatesOfAllPorts checks that the metrics know the certificate that ends first, whatever
// port it is for.
func TestPortTLS_CertificatesOfAllPorts(t *testing.T) {
	ca := testca.New(t, "root")
	https := &endpointTLS{}
	ports := &portTLS{https: https}
	defer ports.close()
	defer https.close()
	end := testca.End
	for _, files := range []*tlsFiles{&ports.clients, &ports.peers, &https.admin, &https.metrics} {
		end = end.Add(-time.Hour)
		o := tlsconf.Options{Prefix: "ssl.", ClientAuth: tlsconf.None}
		o.KeyStore.Location = ca.Issue(t, testca.Spec{NotAfter: end}).Files(t).Key
		if _, err := files.apply(true, o, hclog.NewNullLogger()); err != nil {
			t.Fatal(err)
		}
		if got := ports.certificates().Expires; !got.Equal(end) {
			t.Errorf("the first certificate ends at %v, want %v", got, end)
		}
	}
}
