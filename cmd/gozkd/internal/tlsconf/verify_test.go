package tlsconf

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/testca"
)

// zone is a DNS.
type zone struct {
	names map[string][]string
	addrs map[string]string
}

func (z zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if z.names[addr] == nil {
		return nil, errors.New("no name")
	}
	return z.names[addr], nil
}

func (z zone) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	return []net.IPAddr{{IP: net.ParseIP(z.addrs[host])}}, nil
}

func TestVerifyAddress(t *testing.T) {
	ca := testca.New(t, "root")
	server := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Files(t)
	from := &net.TCPAddr{IP: net.ParseIP("10.0.0.7"), Port: 40000}
	dns := zone{
		names: map[string][]string{"10.0.0.7": {"liar.example.", "app.example."}},
		addrs: map[string]string{"app.example": "10.0.0.7", "liar.example": "10.0.0.8"},
	}
	for _, c := range []struct {
		host                   string
		host2, caller, reverse bool // the keys
		want                   string
	}{
		{"10.0.0.7", true, true, false, ""},
		{"10.0.0.8", true, true, false, neterr.WrongHost},
		{"10.0.0.8", true, false, false, ""},
		{"10.0.0.8", false, true, false, ""},
		{"app.example", true, true, false, neterr.WrongHost},
		{"app.example", true, true, true, ""},
		{"liar.example", true, true, true, neterr.WrongHost},
	} {
		o := options(Server, server)
		o.HostnameVerification, o.ClientHostnameVerification, o.ReverseDNS, o.Resolver = c.host2, c.caller, c.reverse, dns
		got := shakeAt(load(t, o).Server(), ca.Issue(t, testca.Spec{Hosts: []string{c.host}}).Client("zk"), from)
		if reason := neterr.TLSReason(got.serverErr); reason != c.want {
			t.Errorf("%+v: %q", c, reason)
		}
	}
}

func TestClient_Verifies(t *testing.T) {
	ca, other := testca.New(t, "root"), testca.New(t, "other")
	good := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}})
	foreign := other.Issue(t, testca.Spec{Hosts: []string{"zk"}}).Server()
	foreign.ClientCAs = ca.Pool()
	o := options(Client, ca.Issue(t, testca.Spec{}).Files(t))
	strict := load(t, o)
	o.HostnameVerification = false
	lax := load(t, o)
	if got := neterr.TLSReason(shake(good.Server(), strict.Client("other")).clientErr); got != neterr.WrongHost {
		t.Errorf("%q", got)
	}
	if got := neterr.TLSReason(shake(good.Server(), strict.Client("")).clientErr); got != neterr.WrongHost {
		t.Errorf("%q", got)
	}
	if err := shake(good.Server(), lax.Client("other")).clientErr; err != nil {
		t.Error(err)
	}
	for _, s := range []*Source{strict, lax} {
		if got := neterr.TLSReason(shake(foreign, s.Client("zk")).clientErr); got != neterr.Unknown {
			t.Errorf("%q", got)
		}
	}
}
