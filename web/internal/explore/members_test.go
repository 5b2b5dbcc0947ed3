package explore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// A member is asked where its server line says that clients reach it, or at the port that members
// without a client port have.
func TestOthers_ClientAddress(t *testing.T) {
	for _, c := range []struct {
		line      string
		otherwise int
		want      string
	}{
		{"p:2888:3888;h:2181", 7, "h:2181"},
		{"p:2888:3888;0.0.0.0:2181", 7, "p:2181"},
		{"[::1]:2888:3888;[::]:2181", 7, "[::1]:2181"},
		{"p:2888:3888", 7, "p:7"},
		{"p:2888:3888", 0, ""},
	} {
		m, err := serverlist.Parse("server.2", c.line)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		asked := ""
		o := others{port: c.otherwise, ask: func(_ context.Context, address, _ string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = address
			return "", errors.New("down")
		}}
		a := o.of(serverlist.Set{m}, 1)[int(m.ID)]
		if asked != c.want || (a.Unknown == "down") != (c.want != "") {
			t.Errorf("%+v: %q was asked, %+v", c, asked, a)
		}
	}
	if m, err := serverlist.Parse("server.2", "p:2888:3888;h:0"); err == nil {
		t.Errorf("a server line with client port 0 is taken: %v", m)
	}
}
