package ports

import (
	"context"
	"errors"
	"net"
	"testing"
)

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
