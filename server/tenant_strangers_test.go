package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Whoever may not read a znode, and whoever must prove an identity first, cannot use up the budget
// of its subtree.
func TestTenant_Strangers(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := connected(dial)
		secret := proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: digestOf("alice:secret")}}
		c.call(1, proto.OpCreate, create{path: "/a"})
		c.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, 10_000), Version: -1})
		c.call(3, proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: []proto.ACL{secret}, Version: -1})
		c.budget("/a", 0, 10_000)
		for range 100 {
			for _, r := range []struct {
				op   proto.OpCode
				body record
			}{
				{proto.OpGetData, &proto.PathWatchRequest{Path: "/a"}},
				{proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/a"}}}},
			} {
				if _, took := c.timed(r.op, r.body); took > 20*time.Millisecond {
					t.Fatalf("%v takes bytes that it does not get: the next one waits %v", r.op, took)
				}
			}
		}
	})
	required := ticks
	required.SuperDigest = superDigest()
	required.Auth.Required = []string{"digest"}
	bubble(t, required, func(t *testing.T, dial func() *raw) {
		admin := connected(dial)
		admin.request(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("bob:x")})
		admin.reply()
		admin.budget("/a", 1, 0)
		for range 10 {
			connected(dial).request(1, proto.OpExists, &proto.PathWatchRequest{Path: "/a"})
			synctest.Wait()
		}
		if code, took := admin.seek("/a"); code != proto.ErrNoNode || took != 0 {
			t.Errorf("after requests of clients without an identity: %v after %v", code, took)
		}
	})
}
