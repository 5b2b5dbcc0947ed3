package gozk

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/cases"
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
func next(ctx context.Context, events <-chan zk.Event, typ zk.EventType, path string) error {
	select {
	case e := <-events:
		if e.Err != nil || e.Type != typ || e.Path != path {
			return fmt.Errorf("got event %+v, want %v of %s", e, typ, path)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no event %v of %s: %w", typ, path, ctx.Err())
	}
}

func watchData(ctx context.Context, c *zk.Conn, root string) error {
	_, _, events, err := c.GetW(root)
	if err != nil {
		return err
	}
	if _, err := c.Set(root, []byte("1"), -1); err != nil {
		return err
	}
	return next(ctx, events, zk.EventNodeDataChanged, root)
}

func watchExists(ctx context.Context, c *zk.Conn, root string) error {
	path := root + "/later"
	exists, _, events, err := c.ExistsW(path)
	if err != nil {
		return err
	}
	if exists {
		return errNotGone
	}
	if _, err := c.Create(path, nil, 0, open()); err != nil {
		return err
	}
	return next(ctx, events, zk.EventNodeCreated, path)
}

func watchChildren(ctx context.Context, c *zk.Conn, root string) error {
	_, _, events, err := c.ChildrenW(root)
	if err != nil {
		return err
	}
	// Neither a data change nor a grandchild is a change of the children.
	if _, err := c.Set(root, []byte("1"), -1); err != nil {
		return err
	}
	select {
	case e := <-events:
		return fmt.Errorf("got %+v", e)
	default:
	}
	if _, err := c.Create(root+"/a", nil, 0, open()); err != nil {
		return err
	}
	return next(ctx, events, zk.EventNodeChildrenChanged, root)
}

func watchDeleted(ctx context.Context, c *zk.Conn, root string) error {
	path, err := c.Create(root+"/a", nil, 0, open())
	if err != nil {
		return err
	}
	_, _, data, err := c.GetW(path)
	if err != nil {
		return err
	}
	_, _, children, err := c.ChildrenW(path)
	if err != nil {
		return err
	}
	_, _, parent, err := c.ChildrenW(root)
	if err != nil {
		return err
	}
	if err := c.Delete(path, -1); err != nil {
		return err
	}
	if err := next(ctx, data, zk.EventNodeDeleted, path); err != nil {
		return err
	}
	if err := next(ctx, children, zk.EventNodeDeleted, path); err != nil {
		return err
	}
	return next(ctx, parent, zk.EventNodeChildrenChanged, root)
}

func watchMany(ctx context.Context, c *zk.Conn, root string) error {
	const n = 500
	watches := make(map[string]<-chan zk.Event, n)
	for i := range n {
		path := fmt.Sprintf("%s/n%d", root, i)
		_, _, events, err := c.ExistsW(path)
		if err != nil {
			return err
		}
		watches[path] = events
	}
	for path := range watches {
		if _, err := c.Create(path, nil, 0, open()); err != nil {
			return err
		}
	}
	for path, events := range watches {
		if err := next(ctx, events, zk.EventNodeCreated, path); err != nil {
			return err
		}
	}
	return nil
}

// watchesSurvive sets more watches than a setWatches request carries, cuts the connection, and
// expects every event of changes after the reconnect.
func (s *script) watchesSurvive(ctx context.Context, c *zk.Conn, root string) error {
	p, err := newProxy(s.addr)
	if err != nil {
		return err
	}
	defer p.close()
	var states recorder
	watcher, err := connectTo(ctx, p.addr(), sessionTimeout, &states)
	if err != nil {
		return err
	}
	defer watcher.Close()
	const n = 3000 // with paths this long several requests
	watches := make(map[string]<-chan zk.Event, n)
	for i := range n {
		path := fmt.Sprintf("%s/a-rather-long-name-so-that-one-request-cannot-carry-them-all-%04d", root, i)
		_, _, events, err := watcher.ExistsW(path)
		if err != nil {
			return err
		}
		watches[path] = events
	}
	_, _, children, err := watcher.ChildrenW(root)
	if err != nil {
		return err
	}
	if err := s.reconnect(ctx, p, watcher, &states); err != nil {
		return err
	}
	changed := 0
	for path, events := range watches {
		if changed++; changed > 20 {
			break
		}
		if _, err := c.Create(path, nil, 0, open()); err != nil {
			return err
		}
		if err := next(ctx, events, zk.EventNodeCreated, path); err != nil {
			return err
		}
	}
	return next(ctx, children, zk.EventNodeChildrenChanged, root)
}

// watchesMissed changes watched znodes while the client is away: setWatches must report it.
func (s *script) watchesMissed(ctx context.Context, c *zk.Conn, root string) error {
	p, err := newProxy(s.addr)
	if err != nil {
		return err
	}
	defer p.close()
	var states recorder
	watcher, err := connectTo(ctx, p.addr(), sessionTimeout, &states)
	if err != nil {
		return err
	}
	defer watcher.Close()
	for _, name := range []string{"/changed", "/deleted", "/parent"} {
		if _, err := c.Create(root+name, nil, 0, open()); err != nil {
			return err
		}
	}
	// The watcher's last zxid must not be older than these creates.
	if _, err := watcher.Sync(root); err != nil {
		return err
	}
	_, _, changed, err := watcher.GetW(root + "/changed")
	if err != nil {
		return err
	}
	_, _, deleted, err := watcher.GetW(root + "/deleted")
	if err != nil {
		return err
	}
	_, _, created, err := watcher.ExistsW(root + "/created")
	if err != nil {
		return err
	}
	_, _, parent, err := watcher.ChildrenW(root + "/parent")
	if err != nil {
		return err
	}
	p.hold()
	p.cut()
	if _, err := c.Set(root+"/changed", []byte("1"), -1); err != nil {
		return err
	}
	if err := c.Delete(root+"/deleted", -1); err != nil {
		return err
	}
	if _, err := c.Create(root+"/created", nil, 0, open()); err != nil {
		return err
	}
	if _, err := c.Create(root+"/parent/child", nil, 0, open()); err != nil {
		return err
	}
	p.release()
	if err := next(ctx, changed, zk.EventNodeDataChanged, root+"/changed"); err != nil {
		return err
	}
	if err := next(ctx, deleted, zk.EventNodeDeleted, root+"/deleted"); err != nil {
		return err
	}
	if err := next(ctx, created, zk.EventNodeCreated, root+"/created"); err != nil {
		return err
	}
	return next(ctx, parent, zk.EventNodeChildrenChanged, root+"/parent")
}

// reconnect cuts the connection and waits until the client has its session again.
func (s *script) reconnect(ctx context.Context, p *proxy, c *zk.Conn, states *recorder) error {
	session, had := c.SessionID(), states.count(zk.StateHasSession)
	p.cut()
	if err := cases.Eventually(ctx, "connected again", func() bool { return states.count(zk.StateHasSession) > had }); err != nil {
		return err
	}
	return cases.Expect("session", c.SessionID(), session)
}
