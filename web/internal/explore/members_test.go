package explore

import (
	"testing"

	"github.com/gozkd/gozkd/server"
)

func TestClientAddress(t *testing.T) {
	for _, c := range []struct {
		client, peer string
		otherwise    int
		want         string
	}{
		{"h:2181", "p:2888", 7, "h:2181"},
		{"0.0.0.0:2181", "p:2888", 7, "p:2181"},
		{"[::]:2181", "[::1]:2888", 7, "[::1]:2181"},
		{"", "p:2888", 7, "p:7"},
		{"", "p:2888", 0, ""},
		{"h:0", "p:2888", 7, ""},
	} {
		if got := clientAddress(server.MemberStatus{ClientAddress: c.client, PeerAddress: c.peer}, c.otherwise); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
