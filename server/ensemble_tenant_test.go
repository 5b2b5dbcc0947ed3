package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Each member gives a tenant its whole budget, and knows the budget after it was set elsewhere,
// after a start, and when it was away while the budget was set and the log thrown away.
func TestEnsemble_Budgets(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.each(func(c *server.Config) { c.SnapCount = 5 })
		e.startAll()
		charged := func(id int, path string, want bool) {
			t.Helper()
			c := e.connect(id, time.Minute)
			c.call(1, proto.OpSync, &proto.PathRequest{Path: new(string)})
			c.spends(checks(path, 100))
			code, took := e.connect(id, time.Minute).seek(path)
			if refused := code == proto.ErrThrottledOp && took >= time.Second; refused != want {
				t.Errorf("server %d: %v for %s after %v", id, code, path, took)
			}
		}
		e.connect(1, time.Minute).budget("/a", 5, 0)
		for id := 1; id <= 3; id++ {
			charged(id, "/a", true)
		}
		away := e.followers()[0]
		e.m(away).kill()
		other := e.connect(away%3+1, time.Minute)
		other.budget("/b", 5, 0)
		other.call(1, proto.OpDelete, &proto.PathVersionRequest{Path: "/zookeeper/quota/a/zookeeper_budget", Version: -1})
		for range 100 {
			other.call(1, proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1})
		}
		e.start(away)
		charged(away, "/a", false)
		charged(away, "/b", true)
		for id := 1; id <= 3; id++ {
			e.m(id).kill()
		}
		e.startAll()
		for id := 1; id <= 3; id++ {
			charged(id, "/a", false)
			charged(id, "/b", true)
		}
	})
}
