package server_test

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// guarded creates /guarded with an ACL.
type guarded []proto.ACL

func (g guarded) Append(b []byte) []byte {
	return (&proto.CreateRequest{Path: "/guarded", ACL: g}).Append(b, proto.OpCreate)
}

// An identity belongs to the connection that proved it, not to connections before or after it.
func TestAuth_IdentityBelongsToItsConnection(t *testing.T) {
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		before, owner := dial(), dial()
		before.connect(10_000, 0, nil)
		owner.connect(10_000, 0, nil)
		if h, _ := owner.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("user:password")}); h.Err != proto.OK {
			t.Fatal(h.Err)
		}
		acl := guarded{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
		if h, _ := owner.call(1, proto.OpCreate, acl); h.Err != proto.OK {
			t.Fatal(h.Err)
		}
		after := dial()
		after.connect(10_000, 0, nil)
		for r, want := range map[*raw]proto.ErrCode{owner: proto.OK, before: proto.ErrNoAuth, after: proto.ErrNoAuth} {
			if h, _ := r.call(2, proto.OpGetData, &proto.PathWatchRequest{Path: "/guarded"}); h.Err != want {
				t.Errorf("read: %v, want %v", h.Err, want)
			}
		}
	})
}

// A client that may not read a znode is not told of it. Its watch is consumed, as in ZooKeeper.
func TestWatch_NeedsThePermissionToRead(t *testing.T) {
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		r.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/guarded", Watch: true})
		world := proto.ID{Scheme: "world", ID: "anyone"}
		// call fails the test if an event comes before the reply.
		if h, _ := r.call(2, proto.OpCreate, guarded{{Perms: proto.PermAll &^ proto.PermRead, ID: world}}); h.Err != proto.OK {
			t.Fatal(h.Err)
		}
		r.call(3, proto.OpDelete, &proto.PathVersionRequest{Path: "/guarded", Version: -1})
		r.call(4, proto.OpCreate, guarded{{Perms: proto.PermAll, ID: world}})
		r.ping()
	})
}

// Who a SASL user is can be asked before the start and after the end.
func TestIdentities_WheneverAsked(t *testing.T) {
	s, err := server.New(server.Config{InProcess: true, Auth: server.Authentication{SASLSupers: []string{"bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(when string) {
		t.Helper()
		if ids := s.Identities().IdentifySASL("bob"); len(ids) != 2 || ids[0].Scheme != "sasl" || ids[1].Scheme != "super" {
			t.Errorf("%s bob has %v, want sasl and super", when, ids)
		}
	}
	ask("before the start")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ask("after the end")
}
