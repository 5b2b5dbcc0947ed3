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

func (h *hookedConn) Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return ask(h.hooks, zktest.Create, path, false, func() (string, error) { return h.Conn.Create(path, data, flags, acl) })
}

func (h *hookedConn) CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error) {
	return ask(h.hooks, zktest.Create, path, false, func() (string, error) { return h.Conn.CreateContainer(path, data, flag, acl) })
}

func (h *hookedConn) CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error) {
	return ask(h.hooks, zktest.Create, path, false, func() (string, error) { return h.Conn.CreateTTL(path, data, flag, acl, ttl) })
}

func (h *hookedConn) Delete(path string, version int32) error {
	return h.hooks.ask(zktest.Delete, path, false, func() error { return h.Conn.Delete(path, version) })
}

func (h *hookedConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	return ask(h.hooks, zktest.Set, path, false, func() (*zk.Stat, error) { return h.Conn.Set(path, data, version) })
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

func (h *hookedConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	return ask(h.hooks, zktest.Multi, firstPath(ops), false, func() ([]zk.MultiResponse, error) { return h.Conn.Multi(ops...) })
}

func (h *hookedConn) Sync(path string) (string, error) {
	if path == "/" { // a probe of the Client
		return h.Conn.Sync(path)
	}
	return ask(h.hooks, zktest.Sync, path, false, func() (string, error) { return h.Conn.Sync(path) })
}

func ask[T any](h *Hooks, op zktest.Op, path string, watch bool, send func() (T, error)) (v T, err error) {
	err = h.ask(op, path, watch, func() (err error) {
		v, err = send()
		return err
	})
	return v, err
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
