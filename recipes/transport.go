package recipes

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/requesthook"
)

// transport sends the requests of a Client and reports the sessions to the core. native is that of
// Connect, wrapped that of Wrap. Paths are the server's, and data is not nil. classify says what the
// errors mean. ctx need not end a call, but where ctx ends a call before the request was sent, the
// request never will be sent.
type transport interface {
	create(ctx context.Context, path string, data []byte, o CreateOptions) (string, error)
	delete(ctx context.Context, path string, version int32) error
	set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error)
	read(ctx context.Context, kind readKind, path string, watch bool) (readResult, error)
	multi(ctx context.Context, ops []any) ([]zk.MultiResponse, error)
	sync(ctx context.Context, path string) error
	// watchTree calls f, which must not block, for each event at path and below it, in order, until
	// ctx or the session ends.
	watchTree(ctx context.Context, path string, f func(zk.Event)) error

	// seenZxid returns a zxid that the Client has seen.
	seenZxid() int64
	// foundOwn notes an ephemeral of the current session that create did not return.
	foundOwn(path string)
	// place returns the session and the server of the connection, 0 and "" without a connection.
	place() (session int64, server string)
	// heard notes that the leader heard of the session at that time or later.
	heard(session int64, at time.Duration)
	// close ends the connection. limit bounds the wait for answers.
	close(s *Session, limit time.Duration) (unanswered int)
}

// hooked calls a test's function for each request.
type hooked struct {
	transport
	hook requesthook.Func
}

func (h *hooked) create(ctx context.Context, path string, data []byte, o CreateOptions) (string, error) {
	return intercept(h, "create", path, false, func() (string, error) { return h.transport.create(ctx, path, data, o) })
}

func (h *hooked) delete(ctx context.Context, path string, version int32) error {
	return h.hook("delete", path, false, func() error { return h.transport.delete(ctx, path, version) })
}

func (h *hooked) set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	return intercept(h, "set", path, false, func() (*zk.Stat, error) { return h.transport.set(ctx, path, data, version) })
}

func (h *hooked) read(ctx context.Context, kind readKind, path string, watch bool) (readResult, error) {
	return intercept(h, kind.String(), path, watch, func() (readResult, error) { return h.transport.read(ctx, kind, path, watch) })
}

func (h *hooked) multi(ctx context.Context, ops []any) ([]zk.MultiResponse, error) {
	return intercept(h, "multi", firstPath(ops), false, func() ([]zk.MultiResponse, error) { return h.transport.multi(ctx, ops) })
}

func (h *hooked) sync(ctx context.Context, path string) error {
	if path == "/" { // as the probes do
		return h.transport.sync(ctx, path)
	}
	return h.hook("sync", path, false, func() error { return h.transport.sync(ctx, path) })
}

func intercept[T any](h *hooked, op, path string, watch bool, send func() (T, error)) (v T, err error) {
	err = h.hook(op, path, watch, func() (err error) {
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
