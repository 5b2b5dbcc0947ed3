package ports

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// The client port moves when the members have another client address than the configured line.
func TestListenAddress(t *testing.T) {
	for _, c := range []struct {
		configured string // client address of the line, "" if only clientPort is set
		listen     string
		committed  string
		want       string
	}{
		{";2181", ":2181", ";2181", ":2181"},
		{";2181", "10.0.0.1:2181", ";2181", "10.0.0.1:2181"}, // with clientPortAddress
		{";2181", ":2181", ";2191", ":2191"},
		{";2181", "10.0.0.1:2181", ";2191", "10.0.0.1:2191"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";2191", ":2191"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";2181", ":2181"},
		{";10.0.0.1:2181", "10.0.0.1:2181", ";10.0.0.2:2181", "10.0.0.2:2181"},
		{";2181", ":2181", ";a:2181", ":2181"}, // listens there
		{";2181", ":2181", ";a:2191", "a:2191"},
		{"", ":2181", ";a:2181", ":2181"},
		{"", "127.0.0.1:2181", ";2182", "127.0.0.1:2182"},
		{";2181", "[::1]:2181", ";[::2]:2181", "[::2]:2181"},
	} {
		line := func(client string) serverlist.Member {
			set, _, err := serverlist.ParseConfig("server.1=m:1:2:participant" + client)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := set.Get(1)
			return m
		}
		if got := listenAddress(line(c.configured), line(c.committed), c.listen); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// An address is resolved as the net package does to listen on it, and no longer than the context.
func TestResolve(t *testing.T) {
	for _, address := range []string{"127.0.0.1:2888", "[::1]:2888", "localhost:2888", ":2888", "0.0.0.0:2888", "[::]:2888", "localhost", "localhost:many"} {
		want, wantErr := net.ResolveTCPAddr("tcp", address)
		got, err := resolve(t.Context(), address)
		if (err == nil) != (wantErr == nil) || err == nil && (got.Port != want.Port || !got.IP.Equal(want.IP)) {
			t.Errorf("%q: %v, %v, not %v, %v", address, got, err, want, wantErr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := resolve(ctx, "gozkd.invalid:2888"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v, %v", a, err)
	}
}

// A server whose address for members a reconfig moves listens on all addresses if it did before.
func TestPeerAddress(t *testing.T) {
	for _, c := range []struct{ configured, wanted, want string }{
		{":2888", "a:2889", ":2889"},
		{"0.0.0.0:2888", "a:2889", "0.0.0.0:2889"},
		{"[::]:2888", "a:2889", "[::]:2889"},
		{"a:2888", "b:2889", "b:2889"},
		{":2888", "a:2889|b:2889", "a:2889|b:2889"},
		{"a:2888|b:2888", "c:2889", "c:2889"},
	} {
		if got := PeerAddress(c.configured, c.wanted); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
