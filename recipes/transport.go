package recipes

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// transport sends the requests of a Client and reports the sessions to the core. native is that of
// Connect, wrapped that of Wrap. Paths are the server's, and data is not nil. classify says what
// the errors mean. ctx need not end a call. If ctx ends before the request is sent, the request
// must not be sent later.
type transport interface {
	create(ctx context.Context, path string, data []byte, o CreateOptions) (string, error)
	delete(ctx context.Context, path string, version int32) error
	set(ctx context.Context, path string, data []byte, version int32) (*proto.Stat, error)
	read(ctx context.Context, kind readKind, path string, watch bool) (readResult, error)
	multi(ctx context.Context, ops []client.Op) ([]client.Result, error)
	sync(ctx context.Context, path string) error
	// watchTree calls f, which must not block, for each event at path, in order, until ctx ends; if
	// recursive, also for each below path.
	watchTree(ctx context.Context, path string, recursive bool, f func(client.Event)) error

	// seenZxid returns a zxid that the Client has seen.
	seenZxid() int64
	// foundOwn notes an ephemeral of the current session that create did not return.
	foundOwn(path string)
	// place returns the session and the server of the connection, 0 and "" without a connection.
	place() (session int64, server string)
	// heard notes that the leader heard of the session at that time or later, provided that the
	// connection's pings were in time, unless that is proven.
	heard(session int64, at time.Duration, proven bool)
	// leaveServer leaves the present server, if that is possible, and keeps the session.
	leaveServer()
	// close ends the connection. limit bounds the wait for answers.
	close(s *Session, limit time.Duration) (unanswered int)
}
