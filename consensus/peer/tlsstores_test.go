package peer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/tlsconf"
)

// T5, with stores and revocation lists as gozkd reads them: both sides refuse a certificate that is
// expired, foreign, revoked or of another host, and the log of the side that refuses says which of
// these it is.
func TestT5_RefusedWithTheReason(t *testing.T) {
	ca := testca.New(t, "members")
	here := testca.Spec{Hosts: []string{"127.0.0.1"}}
	// stores returns the TLS of a member with cert that trusts ca and has this revocation list;
	// nil: none.
	stores := func(t *testing.T, cert *testca.Cert, list []byte) TLS {
		t.Helper()
		o := tlsconf.Options{Prefix: "ssl.quorum.", Role: tlsconf.Both}
		o.KeyStore.Location = cert.Files(t).Key
		o.TrustStore.Location = ca.Files(t).CA
		if list != nil {
			o.CRL, o.CRLLocation = true, testca.WriteFile(t, filepath.Join(t.TempDir(), "list.crl"), list)
		}
		source, err := tlsconf.Load(o, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return TLS{Mode: TLSRequired, Server: source.Server(), Client: source.Client}
	}
	good, revoked := ca.Issue(t, here), ca.Issue(t, here)
	expired := here
	expired.NotAfter = time.Now().Add(-time.Hour)
	var none time.Time
	list, old := ca.CRL(t, none, none, revoked), ca.CRL(t, none, time.Now().Add(-time.Hour))
	for _, c := range []struct {
		name string
		cert *testca.Cert // of member 2
		list []byte       // of member 1
		says string       // empty: accepted
	}{
		{"accepted", good, list, ""},
		{"expired", ca.Issue(t, expired), list, "certificate expired"},
		{"foreign", testca.New(t, "others").Issue(t, here), list, "certificate of an unknown authority"},
		{"another host", ca.Issue(t, testca.Spec{Hosts: []string{"zk2.example"}}), list, `is for "zk2.example", and its server line on member 1 names 127.0.0.1`},
		{"revoked", revoked, list, "certificate revoked"},
		{"outdated list", good, old, "revocation of the certificate cannot be checked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{}
			a := w.start(t, 1, func(_ *member, cfg *Config) { cfg.TLS = stores(t, ca.Issue(t, here), c.list) })
			b := w.start(t, 2, func(_ *member, cfg *Config) { cfg.TLS = stores(t, c.cert, nil) })
			if c.says == "" {
				know(a, b)
				return
			}
			says := strings.ReplaceAll(c.says, `"`, `\"`)
			logs := func(what string) bool {
				return slices.ContainsFunc(strings.Split(a.log.String(), "\n"), func(line string) bool {
					return strings.Contains(line, what) && strings.Contains(line, says)
				})
			}
			a.SetPeers(map[uint64]string{2: b.address}) // first: until then there is no host to compare
			eventually(t, "the dialing side logs the reason", func() bool { return logs("no connection to peer") })
			b.SetPeers(map[uint64]string{1: a.address})
			eventually(t, "the accepting side logs the reason", func() bool { return logs("connection from peer refused") })
			b.await(1, "down")
			if len(a.frames)+len(b.frames) > 0 || a.status(2).Incoming || b.status(1).Connected {
				t.Error("they are connected")
			}
		})
	}
}
