package recipetest

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// hookedConn is a connection that reports its requests to Hooks.
type hookedConn struct {
	*zk.Conn
	hooks *Hooks
}

var _ recipes.Conn = (*hookedConn)(nil)

func (h *hookedConn) Create(path string, data []byte, flags int32, acl []zk.ACL) (created string, err error) {
	err = h.hooks.ask(zktest.Create, path, false, func() (err error) {
		created, err = h.Conn.Create(path, data, flags, acl)
		return err
	})
	return created, err
}

func (h *hookedConn) CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (created string, err error) {
	err = h.hooks.ask(zktest.Create, path, false, func() (err error) {
		created, err = h.Conn.CreateContainer(path, data, flag, acl)
		return err
	})
	return created, err
}

func (h *hookedConn) CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (created string, err error) {
	err = h.hooks.ask(zktest.Create, path, false, func() (err error) {
		created, err = h.Conn.CreateTTL(path, data, flag, acl, ttl)
		return err
	})
	return created, err
}

func (h *hookedConn) Delete(path string, version int32) error {
	return h.hooks.ask(zktest.Delete, path, false, func() error { return h.Conn.Delete(path, version) })
}

func (h *hookedConn) Set(path string, data []byte, version int32) (stat *zk.Stat, err error) {
	err = h.hooks.ask(zktest.Set, path, false, func() (err error) {
		stat, err = h.Conn.Set(path, data, version)
		return err
	})
	return stat, err
}

func (h *hookedConn) Get(path string) (data []byte, stat *zk.Stat, err error) {
	err = h.hooks.ask(zktest.Get, path, false, func() (err error) {
		data, stat, err = h.Conn.Get(path)
		return err
	})
	return data, stat, err
}

func (h *hookedConn) GetW(path string) (data []byte, stat *zk.Stat, fires <-chan zk.Event, err error) {
	err = h.hooks.ask(zktest.Get, path, true, func() (err error) {
		data, stat, fires, err = h.Conn.GetW(path)
		return err
	})
	return data, stat, fires, err
}

func (h *hookedConn) Exists(path string) (exists bool, stat *zk.Stat, err error) {
	err = h.hooks.ask(zktest.Exists, path, false, func() (err error) {
		exists, stat, err = h.Conn.Exists(path)
		return err
	})
	return exists, stat, err
}

func (h *hookedConn) ExistsW(path string) (exists bool, stat *zk.Stat, fires <-chan zk.Event, err error) {
	err = h.hooks.ask(zktest.Exists, path, true, func() (err error) {
		exists, stat, fires, err = h.Conn.ExistsW(path)
		return err
	})
	return exists, stat, fires, err
}

func (h *hookedConn) Children(path string) (names []string, stat *zk.Stat, err error) {
	err = h.hooks.ask(zktest.Children, path, false, func() (err error) {
		names, stat, err = h.Conn.Children(path)
		return err
	})
	return names, stat, err
}

func (h *hookedConn) ChildrenW(path string) (names []string, stat *zk.Stat, fires <-chan zk.Event, err error) {
	err = h.hooks.ask(zktest.Children, path, true, func() (err error) {
		names, stat, fires, err = h.Conn.ChildrenW(path)
		return err
	})
	return names, stat, fires, err
}

func (h *hookedConn) Multi(ops ...any) (results []zk.MultiResponse, err error) {
	err = h.hooks.ask(zktest.Multi, firstPath(ops), false, func() (err error) {
		results, err = h.Conn.Multi(ops...)
		return err
	})
	return results, err
}

func (h *hookedConn) Sync(path string) (synced string, err error) {
	if path == "/" { // a probe of the Client
		return h.Conn.Sync(path)
	}
	err = h.hooks.ask(zktest.Sync, path, false, func() (err error) {
		synced, err = h.Conn.Sync(path)
		return err
	})
	return synced, err
}

func firstPath(ops []any) string {
	if len(ops) == 0 {
		return ""
	}
	switch op := ops[0].(type) {
	case *zk.CreateRequest:
		return op.Path
	case *zk.SetDataRequest:
		return op.Path
	case *zk.DeleteRequest:
		return op.Path
	case *zk.CheckVersionRequest:
		return op.Path
	}
	return ""
}
