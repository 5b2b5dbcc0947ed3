package certhost_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"github.com/gozkd/gozkd/internal/certhost"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/must"
)

func TestVerify(t *testing.T) {
	ca := testca.New(t, "root")
	for _, c := range []struct {
		spec testca.Spec
		host string
		ok   bool
	}{
		{testca.Spec{Hosts: []string{"zk.example"}}, "zk.example", true},
		{testca.Spec{Hosts: []string{"zk.example"}}, "ZK.Example", true},
		{testca.Spec{Hosts: []string{"zk.example"}}, "other.example", false},
		{testca.Spec{Hosts: []string{"*.example"}}, "zk.example", true},
		{testca.Spec{Hosts: []string{"*.example"}}, "a.zk.example", false},
		{testca.Spec{Hosts: []string{"10.1.2.3"}}, "10.1.2.3", true},
		{testca.Spec{Hosts: []string{"10.1.2.3"}}, "10.1.2.4", false},
		{testca.Spec{Hosts: []string{"::1"}}, "::1", true},
		// The common name counts only without any other name.
		{testca.Spec{CN: "zk.example"}, "zk.example", true},
		{testca.Spec{CN: "10.1.2.3"}, "10.1.2.3", true},
		{testca.Spec{CN: "*.example"}, "zk.example", true},
		{testca.Spec{CN: "zk.example", Hosts: []string{"spiffe://example/zk"}}, "zk.example", true},
		{testca.Spec{CN: "zk.example", Hosts: []string{"other.example"}}, "zk.example", false},
		{testca.Spec{CN: "zk.example", Hosts: []string{"10.1.2.3"}}, "zk.example", false},
		{testca.Spec{CN: "zk.example"}, "", false},
		{testca.Spec{RawSubject: must.Get(asn1.Marshal(pkix.Name{Organization: []string{"zk"}}.ToRDNSequence()))}, "", false},
	} {
		if err := certhost.Verify(ca.Issue(t, c.spec).Leaf, c.host); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
