package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A client whose budget lets nothing pass can still correct it, and the administrator can turn all
// budgets off.
func TestTenant_Corrected(t *testing.T) {
	serverBubble(t, ticks, func(t *testing.T, s *server.Server, dial func() *raw) {
		const path = "/zookeeper/quota/zookeeper/identities/ip:127.0.0.1/zookeeper_budget"
		admin := connected(dial)
		admin.budget("/zookeeper/identities/ip:127.0.0.1", 1, 1)
		connected(dial).spends(checks("/a", 1))
		data := &proto.SetDataRequest{Path: path, Data: []byte("opsPerSecond=1"), Version: -1}
		multi := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Path: path, Data: data.Data, Version: -1}}}
		for _, r := range []struct {
			op   proto.OpCode
			body record
			want time.Duration
		}{
			{proto.OpGetData, &proto.PathWatchRequest{Path: path}, 0}, {proto.OpMulti, multi, 0}, {proto.OpSetData, data, 0},
			{proto.OpMulti, &proto.MultiRequest{Ops: append(checks("/a", 1).Ops, multi.Ops...)}, time.Second},
			{proto.OpExists, &proto.PathWatchRequest{Path: "/zookeepers"}, time.Second},
		} {
			if code, took := admin.timed(r.op, r.body); took != r.want || (code == proto.ErrThrottledOp) != (r.want > 0) {
				t.Errorf("%v: %v after %v", r.op, code, took)
			}
			if r.want > 0 {
				time.Sleep(10 * time.Second) // nobody has a place in the budget any more
				connected(dial).spends(checks("/a", 1))
			}
		}
		cfg := ticks
		cfg.IgnoreBudgets = true
		if _, err := s.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		if code, took := admin.seek("/a"); code != proto.ErrNoNode || took != 0 {
			t.Errorf("without budgets: %v after %v", code, took)
		}
	})
}

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
