package tlsconf

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

func TestSource_BothSides(t *testing.T) {
	ca := testca.New(t, "root")
	server := load(t, options(Server, ca.Sub(t, "sub").Issue(t, testca.Spec{Hosts: []string{"zk.example", "127.0.0.1"}}).Files(t)))
	client := load(t, options(Client, ca.Issue(t, testca.Spec{CN: "alice"}).Files(t)))
	for _, host := range []string{"zk.example", "127.0.0.1"} {
		o := shake(server.Server(), client.Client(host))
		if o.serverErr != nil || o.clientErr != nil {
			t.Fatalf("%s: %v, %v", host, o.serverErr, o.clientErr)
		}
		if got := o.server.VerifiedChains[0][0].Subject.String(); got != "CN=alice" {
			t.Errorf("the server sees %s", got)
		}
	}
}
