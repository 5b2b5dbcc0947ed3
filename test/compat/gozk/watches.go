package gozk

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

func (s *script) watches() []work {
	return []work{
		{"watch_data", watchData},
		{"watch_exists", watchExists},
		{"watch_children", watchChildren},
		{"watch_deleted", watchDeleted},
		{"watches_of_many_paths", watchMany},
		{"watches_survive_a_dropped_connection", s.watchesSurvive},
		{"watches_missed_while_disconnected", s.watchesMissed},
	}
}

// next returns an error unless the next event has this type and path.
func next(ctx context.Context, events <-chan zk.Event, typ zk.EventType, path string) {
	select {
	case e := <-events:
		if e.Err != nil || e.Type != typ || e.Path != path {
			must.Failf("got event %+v, want %v of %s", e, typ, path)
		}

	case <-ctx.Done():
		must.Failf("no event %v of %s: %w", typ, path, ctx.Err())
	}
}

func watchData(ctx context.Context, c *zk.Conn, root string) {
	_, _, events := must.Get3(c.GetW(root))
	must.Get(c.Set(root, []byte("1"), -1))
	next(ctx, events, zk.EventNodeDataChanged, root)
}

func watchExists(ctx context.Context, c *zk.Conn, root string) {
	path := root + "/later"
	exists, _, events := must.Get3(c.ExistsW(path))
	if exists {
		must.Do(errNotGone)
	}
	must.Get(c.Create(path, nil, 0, open()))
	next(ctx, events, zk.EventNodeCreated, path)
}

func watchChildren(ctx context.Context, c *zk.Conn, root string) {
	_, _, events := must.Get3(c.ChildrenW(root))
	// Neither a data change nor a grandchild is a change of the children.
	must.Get(c.Set(root, []byte("1"), -1))
	select {
	case e := <-events:
		must.Failf("got %+v", e)
	default:
	}
	must.Get(c.Create(root+"/a", nil, 0, open()))
	next(ctx, events, zk.EventNodeChildrenChanged, root)
}

func watchDeleted(ctx context.Context, c *zk.Conn, root string) {
	path := must.Get(c.Create(root+"/a", nil, 0, open()))
	_, _, data := must.Get3(c.GetW(path))
	_, _, children := must.Get3(c.ChildrenW(path))
	_, _, parent := must.Get3(c.ChildrenW(root))
	must.Do(c.Delete(path, -1))
	next(ctx, data, zk.EventNodeDeleted, path)
	next(ctx, children, zk.EventNodeDeleted, path)
	next(ctx, parent, zk.EventNodeChildrenChanged, root)
}

func watchMany(ctx context.Context, c *zk.Conn, root string) {
	const n = 500
	watches := make(map[string]<-chan zk.Event, n)
	for i := range n {
		path := fmt.Sprintf("%s/n%d", root, i)
		_, _, events := must.Get3(c.ExistsW(path))
		watches[path] = events
	}
	for path := range watches {
		must.Get(c.Create(path, nil, 0, open()))
	}
	for path, events := range watches {
		next(ctx, events, zk.EventNodeCreated, path)
	}
}

// watchesSurvive sets more watches than a setWatches request carries, cuts the connection, and
// expects every event of changes after the reconnect.
func (s *script) watchesSurvive(ctx context.Context, c *zk.Conn, root string) {
	var l line
	watcher := s.connectBy(ctx, sessionTimeout, &l)
	defer watcher.Close()
	const n = 3000 // with paths this long several requests
	watches := make(map[string]<-chan zk.Event, n)
	for i := range n {
		path := fmt.Sprintf("%s/a-rather-long-name-so-that-one-request-cannot-carry-them-all-%04d", root, i)
		_, _, events := must.Get3(watcher.ExistsW(path))
		watches[path] = events
	}
	_, _, children := must.Get3(watcher.ChildrenW(root))
	l.reconnect(ctx, watcher)
	changed := 0
	for path, events := range watches {
		if changed++; changed > 20 {
			break
		}
		must.Get(c.Create(path, nil, 0, open()))
		next(ctx, events, zk.EventNodeCreated, path)
	}
	next(ctx, children, zk.EventNodeChildrenChanged, root)
}

// watchesMissed changes watched znodes while the client is away: setWatches must report it.
func (s *script) watchesMissed(ctx context.Context, c *zk.Conn, root string) {
	var l line
	watcher := s.connectBy(ctx, sessionTimeout, &l)
	defer watcher.Close()
	for _, name := range []string{"/changed", "/deleted", "/parent"} {
		must.Get(c.Create(root+name, nil, 0, open()))
	}
	// The watcher's last zxid must not be older than these creates.
	must.Get(watcher.Sync(root))
	_, _, changed := must.Get3(watcher.GetW(root + "/changed"))
	_, _, deleted := must.Get3(watcher.GetW(root + "/deleted"))
	_, _, created := must.Get3(watcher.ExistsW(root + "/created"))
	_, _, parent := must.Get3(watcher.ChildrenW(root + "/parent"))
	l.hold(true)
	must.Get(c.Set(root+"/changed", []byte("1"), -1))
	must.Do(c.Delete(root+"/deleted", -1))
	must.Get(c.Create(root+"/created", nil, 0, open()))
	must.Get(c.Create(root+"/parent/child", nil, 0, open()))
	l.cut()
	next(ctx, changed, zk.EventNodeDataChanged, root+"/changed")
	next(ctx, deleted, zk.EventNodeDeleted, root+"/deleted")
	next(ctx, created, zk.EventNodeCreated, root+"/created")
	next(ctx, parent, zk.EventNodeChildrenChanged, root+"/parent")
}
