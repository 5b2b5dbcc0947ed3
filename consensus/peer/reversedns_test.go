package peer

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
)

// dns answers look-ups from tables. An address without a name is not answered until the asker gives
// up.
type dns struct {
	names     map[string]string // by address
	addresses map[string]string // by name
}

func (d dns) LookupAddr(ctx context.Context, ip string) ([]string, error) {
	if name := d.names[ip]; name != "" {
		return []string{name + "."}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (d dns) LookupIPAddr(_ context.Context, name string) ([]net.IPAddr, error) {
	return []net.IPAddr{{IP: net.ParseIP(d.addresses[strings.TrimSuffix(name, ".")])}}, nil
}

// T5: with ReverseDNS a certificate may be for a name of the member's address that resolves to it.
// P9: a DNS that does not answer keeps a caller no longer than other silence, however many
// addresses the member has.
func TestT5_ReverseDNS(t *testing.T) {
	const secs = time.Second
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, w.secured(t, ca, TLSRequired), func(_ *member, cfg *Config) {
			cfg.TLS.ReverseDNS = true
			cfg.Peers = map[uint64]string{2: "192.0.2.2:1", 3: "192.0.2.3:1", 4: "192.0.2.4:1|192.0.2.5:1"}
		})
		synctest.Wait()
		a.resolver = dns{
			names:     map[string]string{"192.0.2.2": "zk2", "192.0.2.3": "zk2"},
			addresses: map[string]string{"zk2": "192.0.2.2"},
		}
		for from, want := range map[uint64]struct {
			says  string
			least time.Duration
		}{
			2: {says: "could not be confirmed"}, // the name is right, but the member cannot be asked
			3: {says: "the certificate of member 3 is for"},
			4: {says: "the certificate of member 4 is for", least: silenceTimeout},
		} {
			begun := time.Now()
			s := w.call(t, a.address)
			s = newStranger(t, tls.Client(s.Conn, ca.Issue(t, testca.Spec{Hosts: []string{"zk2"}}).Client(a.address)))
			_ = s.SetReadDeadline(begun.Add(time.Hour)) // a pipe supports deadlines
			answer := s.exchangeGreetings(kindFrames, from, 1)
			if took := time.Since(begun); answer.kind != kindRefused || !strings.Contains(string(answer.contents), want.says) || took < want.least || took > want.least+secs {
				t.Errorf("member %d: after %v answer of kind %d: %s", from, took, answer.kind, answer.contents)
			}
			_ = s.NetConn().Close()
			synctest.Wait()
		}
		off := a.encryption.Load().TLS
		off.ReverseDNS = false
		if err := a.SetTLS(off); err != nil {
			t.Fatal(err)
		}
		s := w.call(t, a.address)
		s = newStranger(t, tls.Client(s.Conn, ca.Issue(t, testca.Spec{Hosts: []string{"zk2"}}).Client(a.address)))
		if answer := s.exchangeGreetings(kindFrames, 2, 1); !strings.Contains(string(answer.contents), "the certificate of member 2 is for") {
			t.Errorf("without ReverseDNS: answer of kind %d: %s", answer.kind, answer.contents)
		}
	})
}
