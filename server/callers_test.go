package server_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

// as opens a client session of a caller.
func as(t *testing.T, s *server.Server, who server.Caller) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Config{
		Servers: []string{"127.0.0.1:2181"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) { return s.DialAs(ctx, who) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A caller has exactly the identities that the program names, and the address decides about the
// scheme ip.
func TestDialAs_Identities(t *testing.T) {
	s := start(t, server.Config{InProcess: true, MaxClientConns: 1})
	bob := as(t, s, server.Caller{Address: "10.0.0.7", IDs: []proto.ID{{Scheme: "digest", ID: "bob:x="}}})
	ids, err := bob.WhoAmI(t.Context())
	if err != nil || len(ids) != 2 || !slices.Contains(ids, client.Identity{Scheme: "ip", User: "10.0.0.7"}) || !slices.Contains(ids, client.Identity{Scheme: "digest", User: "bob"}) {
		t.Errorf("%v, %v", ids, err)
	}
	only := func(scheme, id string) client.CreateOptions {
		return client.CreateOptions{ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: scheme, ID: id}}}}
	}
	for path, o := range map[string]client.CreateOptions{"/bob": only("digest", "bob:x="), "/there": only("ip", "10.0.0.7"), "/here": only("ip", "127.0.0.1")} {
		if _, _, err := bob.Create(t.Context(), path, nil, o); err != nil {
			t.Fatal(err)
		}
	}
	here := as(t, s, server.Caller{})
	as(t, s, server.Caller{}) // beyond MaxClientConns
	for path, want := range map[string][2]error{"/bob": {nil, proto.ErrNoAuth}, "/there": {nil, proto.ErrNoAuth}, "/here": {proto.ErrNoAuth, nil}} {
		for i, c := range []*client.Client{bob, here} {
			if _, _, err := c.Get(t.Context(), path, false); !errors.Is(err, want[i]) {
				t.Errorf("%s, client %d: %v, want %v", path, i, err, want[i])
			}
		}
	}
}

// Connections of callers take no place of the clients at the same address.
func TestDialAs_LeavesRoom(t *testing.T) {
	s := start(t, server.Config{MaxClientConns: 1})
	for range 2 {
		if err := as(t, s, server.Caller{}).Close(); err != nil {
			t.Fatal(err)
		}
		as(t, s, server.Caller{})
	}
	connect := func() error {
		c, err := client.Connect(t.Context(), client.Config{Servers: []string{s.ConnectString()}})
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return err
	}
	if err := connect(); err != nil {
		t.Error(err)
	}
	if connect() == nil {
		t.Error("a second client exceeds MaxClientConns")
	}
}

// The program may give znodes every ACL that clients may.
func TestPrivileged_ACLSchemes(t *testing.T) {
	for _, scheme := range []string{"x509", "sasl"} {
		for _, allowed := range []bool{true, false} {
			cfg := server.Config{InProcess: true}
			if allowed {
				cfg.Auth.ACLSchemes = []string{scheme}
			}
			s := start(t, cfg)
			as(t, s, server.Caller{}) // a session comes after the rise of the feature level
			acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: scheme, ID: "CN=bob"}}}
			for what, err := range map[string]error{
				"Multi":  s.Multi(t.Context(), 0, proto.MultiOp{Op: proto.OpCreate, Path: "/a", ACL: acl}),
				"SetACL": s.SetACL(t.Context(), "/", acl),
			} {
				if allowed && err != nil || !allowed && !errors.Is(err, proto.ErrInvalidACL) {
					t.Errorf("%s with an ACL of scheme %s, allowed: %v: %v", what, scheme, allowed, err)
				}
			}
		}
	}
}

func TestIdentify(t *testing.T) {
	users := make(sasl.DigestUsers)
	users.Set("bob", "secret")
	cfg := server.Config{InProcess: true, SuperDigest: "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="} // admin
	cfg.Auth.SASL, cfg.Auth.SASLSupers = sasl.NewDigest(users), []string{"bob"}
	s := start(t, cfg)
	super := proto.ID{Scheme: "super"}
	for _, c := range []struct {
		scheme, user, password string
		want                   proto.ID
	}{
		{"sasl", "bob", "secret", proto.ID{Scheme: "sasl", ID: "bob"}},
		{"sasl", "bob", "secret", super},
		{"digest", "super", "admin", super},
	} {
		ids, err := s.Identities().Identify(c.scheme, c.user, c.password)
		if err != nil || !slices.Contains(ids, c.want) {
			t.Errorf("%s %s: %v, %v", c.scheme, c.user, ids, err)
		}
	}
	if ids, err := s.Identities().Identify("digest", "super", "wrong"); err != nil || slices.Contains(ids, super) {
		t.Errorf("%v, %v", ids, err)
	}
	for _, c := range [][3]string{{"sasl", "bob", "wrong"}, {"sasl", "eve", "secret"}, {"sasl", "bob", ""}, {"sasl", "", ""}, {"x509", "bob", "secret"}, {"", "", ""}} {
		if ids, err := s.Identities().Identify(c[0], c[1], c[2]); !errors.Is(err, identity.ErrNotAuthenticated) {
			t.Errorf("%v: %v, %v", c, ids, err)
		}
	}
	without := start(t, server.Config{InProcess: true, DisableDigest: true})
	for _, scheme := range []string{"sasl", "digest"} {
		if ids, err := without.Identities().Identify(scheme, "bob", "secret"); !errors.Is(err, identity.ErrNotAuthenticated) {
			t.Errorf("%s: %v, %v", scheme, ids, err)
		}
	}
}
