package tlsconf

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus/peer"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
)

// member is a member's connections to its peers.
type member struct {
	*peer.Network
	address  string
	log      *logbuf.Buffer
	events   chan string  // "up" and "down", of the peer
	received atomic.Int64 // frames
}

func (m *member) Hello() []byte                     { return []byte("hello") }
func (m *member) Accept(uint64, []byte, bool) error { return nil }
func (m *member) Receive(uint64, []byte)            { m.received.Add(1) }
func (m *member) Drained()                          {}
func (m *member) ReceiveCheckpoint(_ uint64, r io.ReadCloser) error {
	_, err := io.ReadAll(r)
	return err
}
func (m *member) Up(uint64)         { m.events <- "up" }
func (m *member) Down(uint64, bool) { m.events <- "down" }

func startMember(t *testing.T, id uint64, tls peer.TLS) *member {
	t.Helper()
	m := &member{log: new(logbuf.Buffer), events: make(chan string, 10_000)}
	port, l, err := tcpport.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	m.address = port.Address()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	m.Network, err = peer.New(peer.Config{
		Self: id, Listener: l, Handler: m, Dial: dial, TLS: tls,
		Logger: hclog.New(&hclog.LoggerOptions{Output: m.log, Level: hclog.Info}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close of %d: %v", id, err)
		}
	})
	return m
}

// await waits for an event and skips others. The watchdog stops a test that waits in vain.
func (m *member) await(event string) {
	for <-m.events != event {
	}
}

// T5, with stores and revocation lists as gozkd reads them: both sides refuse a certificate that is
// expired, foreign, revoked or of another host, and the log of the side that refuses says which of
// these it is.
func TestT5_RefusedWithTheReason(t *testing.T) {
	ca := testca.New(t, "members")
	here := testca.Spec{Hosts: []string{"127.0.0.1"}}
	// stores returns the TLS of a member with cert that trusts ca and has this revocation list;
	// nil: none.
	stores := func(t *testing.T, cert *testca.Cert, list []byte) peer.TLS {
		t.Helper()
		o := Options{Prefix: "ssl.quorum.", Role: Both}
		o.KeyStore.Location = cert.Files(t).Key
		o.TrustStore.Location = ca.Files(t).CA
		if list != nil {
			o.CRL, o.CRLLocation = true, testca.WriteFile(t, filepath.Join(t.TempDir(), "list.crl"), list)
		}
		source, err := Load(o, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return peer.TLS{Mode: peer.TLSRequired, Server: source.Server(), Client: source.Client}
	}
	good, revoked := ca.Issue(t, here), ca.Issue(t, here)
	expired := here
	expired.NotAfter = time.Now().Add(-time.Hour)
	var none time.Time
	list, old := crl(t, ca, none, none, revoked), crl(t, ca, none, time.Now().Add(-time.Hour))
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
			a := startMember(t, 1, stores(t, ca.Issue(t, here), c.list))
			b := startMember(t, 2, stores(t, c.cert, nil))
			if c.says == "" {
				a.SetPeers(map[uint64]string{2: b.address})
				b.SetPeers(map[uint64]string{1: a.address})
				a.await("up")
				b.await("up")
				return
			}
			says := strings.ReplaceAll(c.says, `"`, `\"`)
			awaitLog := func(what string) { // the watchdog stops a test that waits in vain
				t.Helper()
				tick := time.NewTicker(2 * time.Millisecond)
				defer tick.Stop()
				for !slices.ContainsFunc(strings.Split(a.log.String(), "\n"), func(line string) bool {
					return strings.Contains(line, what) && strings.Contains(line, says)
				}) {
					<-tick.C
				}
			}
			a.SetPeers(map[uint64]string{2: b.address}) // first: until then there is no host to compare
			awaitLog("no connection to peer")
			b.SetPeers(map[uint64]string{1: a.address})
			awaitLog("connection from peer refused")
			b.await("down")
			if a.received.Load()+b.received.Load() > 0 || a.Status()[0].Incoming || b.Status()[0].Connected {
				t.Error("they are connected")
			}
		})
	}
}
