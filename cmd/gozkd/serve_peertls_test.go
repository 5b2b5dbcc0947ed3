package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/server"
)

// sslQuorum and portUnification choose the mode of TLS between servers, at the start and at each
// reload. A configuration that can't be used changes nothing.
func TestPortTLS_StepsOfPeers(t *testing.T) {
	files := testca.New(t, "root").Issue(t, testca.Spec{Hosts: []string{"a"}}).Files(t)
	ports := &portTLS{log: hclog.NewNullLogger()}
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
		present := peersConfig(t, files, c.lines)
		cfg := present.ForServer()
		if err := used(ports.prepare(present, &cfg)); err != nil {
			t.Fatal(err)
		}
		got, o := cfg.PeerTLS, present.PeerTLS
		if err := got.Check(); err != nil || got.Mode != c.mode || cfg.TLS != nil {
			t.Errorf("%q: %v %v", c.lines, got.Mode, err)
		}
		if got.Mode != server.PeerTLSOff && (got.AnyHost == o.HostnameVerification || got.AnyCallerHost == o.ClientHostnameVerification || got.ReverseDNS != o.ReverseDNS ||
			got.Ensemble != present.Server.PeerTLS.Ensemble || got.DetectionTimeout != present.Server.PeerTLS.DetectionTimeout) {
			t.Errorf("%q: %+v", c.lines, got)
		}
		bad := present
		bad.SSLQuorum, bad.PeerTLS.KeyStore.Location = true, "missing.pem"
		if _, err := ports.prepare(bad, &cfg); err == nil {
			t.Error("a missing file is accepted")
		}
	}
}

// TestPortTLS_CertificatesOfAllPorts checks that the metrics know the certificate that ends first,
// whatever port it is for.
func TestPortTLS_CertificatesOfAllPorts(t *testing.T) {
	ca := testca.New(t, "root")
	ports := &portTLS{log: hclog.NewNullLogger()}
	defer ports.close()
	end := testca.End
	for _, files := range []*tlsFiles{&ports.clients, &ports.peers, &ports.admin, &ports.metrics} {
		end = end.Add(-time.Hour)
		o := tlsconf.Options{Prefix: "ssl.", ClientAuth: tlsconf.None}
		o.KeyStore.Location = ca.Issue(t, testca.Spec{NotAfter: end}).Files(t).Key
		_, use, err := files.prepare(true, o, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		use()
		if got := ports.certificates().Expires; !got.Equal(end) {
			t.Errorf("the first certificate ends at %v, want %v", got, end)
		}
	}
}

// peersConfig returns the configuration of a member with stores for TLS between members.
func peersConfig(t *testing.T, files testca.Files, lines string) config.Config {
	t.Helper()
	text := "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nmyid=1\ndataDir=d\nssl.quorum.keyStore.location=" + filepath.ToSlash(files.Key) +
		"\nssl.quorum.trustStore.location=" + filepath.ToSlash(files.CA) + "\n" + lines
	path := testca.WriteFile(t, filepath.Join(t.TempDir(), "zoo.cfg"), []byte(text))
	_, c, err := config.Load([]string{"serve", path}, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPortTLS_UnusedStores checks that the stores of TLS between servers are neither watched nor in
// the metrics while it is off.
func TestPortTLS_UnusedStores(t *testing.T) {
	files := testca.New(t, "root").Issue(t, testca.Spec{}).Files(t)
	ports := &portTLS{log: hclog.NewNullLogger()}
	defer ports.close()
	for _, lines := range []string{"sslQuorum=true", "", "sslQuorum=true"} {
		if err := used(ports.prepare(peersConfig(t, files, lines), new(server.Config))); err != nil {
			t.Fatal(err)
		}
		on := lines != ""
		if watched, counts := ports.peers.cancel != nil, !ports.certificates().Expires.IsZero(); watched != on || counts != on {
			t.Errorf("%q: watched %v, in the metrics %v", lines, watched, counts)
		}
	}
}

// TestPortTLS_SharedStores checks that a change of stores which the admin server shares with the
// peer port counts once.
func TestPortTLS_SharedStores(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{}).Files(t)
	ports := &portTLS{log: hclog.NewNullLogger()}
	defer ports.close()
	c := peersConfig(t, files, "sslQuorum=true\nadmin.forceHttps=true")
	if err := used(ports.prepare(c, new(server.Config))); err != nil {
		t.Fatal(err)
	}
	next := ca.Issue(t, testca.Spec{})
	testca.WriteFile(t, files.Key, next.KeyPEM(t), next.CertPEM())
	for _, f := range []*tlsFiles{&ports.peers, &ports.admin} {
		if err := f.source.Load().Check(); err != nil {
			t.Fatal(err)
		}
	}
	if all := ports.certificates(); all.Reloads != 1 || all.Refused != 0 {
		t.Errorf("one change counts as %+v", all)
	}
}

// Each port with a certificate that ends soon is named, with its file, as long as it is served.
func TestPortTLS_WarnsOfExpiry(t *testing.T) {
	ca := testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{NotAfter: time.Now().Add(240 * time.Hour)}).Files(t)
	key, trust := filepath.ToSlash(files.Key), filepath.ToSlash(files.CA)
	stores := func(prefix string) string {
		return "\n" + prefix + "keyStore.location=" + key + "\n" + prefix + "trustStore.location=" + trust + "\n"
	}
	const prometheus = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"
	for lines, want := range map[string][]string{
		"": nil,
		"sslQuorum=true\nadmin.forceHttps=true\nadmin.serverPort=8443": {
			"ssl.quorum.keyStore.location: " + key + ": the certificate of the port for other servers, a:1 expires in ",
			"ssl.quorum.keyStore.location: " + key + ": the certificate of admin.serverPort 8443 expires in ",
		},
		"secureClientPort=2281" + stores("ssl."):                                            {"ssl.keyStore.location: " + key + ": the certificate of secureClientPort 2281 expires in "},
		"clientPort=1\nclient.portUnification=true" + stores("ssl."):                        {"the certificate of clientPort 1 expires in "},
		"secureClientPort=2281\nclient.portUnification=true\nclientPort=1" + stores("ssl."): {"the certificate of clientPort 1, secureClientPort 2281 expires in "},
		prometheus + "metricsProvider.httpsPort=7443" + stores("metricsProvider.ssl."): {
			"metricsProvider.ssl.keyStore.location: " + key + ": the certificate of metricsProvider.httpsPort 7443 expires in ",
		},
	} {
		ports := &portTLS{log: hclog.NewNullLogger()}
		if err := used(ports.prepare(peersConfig(t, files, lines), new(server.Config))); err != nil {
			t.Fatal(err)
		}
		warning := ports.certificates().Warning
		if got := strings.Count(warning, " days, at "); got != len(want) {
			t.Errorf("%s\n%d certificates are named, want %d: %s", lines, got, len(want), warning)
		}
		for _, w := range want {
			if !strings.Contains(warning, w) {
				t.Errorf("%s\n%q lacks %q", lines, warning, w)
			}
		}
		if ports.close(); ports.certificates().Warning != "" {
			t.Errorf("%s\nafter the end: %s", lines, ports.certificates().Warning)
		}
	}
}

// A member's certificate is judged as the other members do, by its own server line and URI:
// check-config warns of one that they refuse, and neither a replaced file nor a reload takes it in
// place of a better one, at any port.
func TestPortTLS_OwnCertificate(t *testing.T) {
	dir, ca := t.TempDir(), testca.New(t, "root")
	files := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1", "gozkd://main/1"}}).Files(t)
	key, trust := filepath.ToSlash(files.Key), filepath.ToSlash(files.CA)
	file := testca.WriteFile(t, filepath.Join(dir, "zoo.cfg"), []byte(strings.Join([]string{
		"dataDir=" + filepath.ToSlash(dir), "myid=1", "clientPort=2181", "client.portUnification=true", "sslQuorum=true", "gozkd.peer.tlsEnsemble=main",
		"ssl.keyStore.location=" + key, "ssl.trustStore.location=" + trust, "ssl.quorum.keyStore.location=" + key, "ssl.quorum.trustStore.location=" + trust,
		"server.1=127.0.0.1:1:2", "server.2=127.0.0.2:1:2", "server.3=127.0.0.3:1:2", "",
	}, "\n")))
	_, cfg, err := config.Load([]string{file}, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func() string {
		var out, errs strings.Builder
		if status := run("gozkd", []string{"check-config", file}, outside(&out, &errs)); status != 0 {
			t.Errorf("status %d", status)
		}
		return errs.String()
	}
	if got := check(); got != "" {
		t.Errorf("check-config of a good certificate: %s", got)
	}
	p := &portTLS{log: hclog.NewNullLogger()}
	defer p.close()
	if err := used(p.prepare(cfg, &server.Config{})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"127.0.0.2", "gozkd://main/1"}, "its server line on member 1 names 127.0.0.1"},
		{[]string{"127.0.0.1", "gozkd://main/2"}, "the certificate of member 1 names gozkd://main/2"},
		{[]string{"127.0.0.1", "gozkd://other/1"}, "it must name gozkd://main/1"},
	} {
		worse := ca.Issue(t, testca.Spec{Hosts: c.hosts})
		testca.WriteFile(t, files.Key, worse.KeyPEM(t), worse.CertPEM())
		if err := p.peers.source.Load().Check(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "stays in use") {
			t.Errorf("%v: %v, want %s", c.hosts, err, c.want)
		}
		if err := p.clients.source.Load().Check(); err != nil { // clients may know this server by the name of a load balancer
			t.Errorf("%v, for clients: %v", c.hosts, err)
		}
		if err := used(p.prepare(cfg, &server.Config{})); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: reload: %v, want %s", c.hosts, err, c.want)
		}
		if got := check(); !strings.Contains(got, c.want) {
			t.Errorf("%v: check-config: %s, want %s", c.hosts, got, c.want)
		}
	}
}

// used calls use, unless prepare has failed.
func used(use func(), err error) error {
	if err == nil {
		use()
	}
	return err
}
