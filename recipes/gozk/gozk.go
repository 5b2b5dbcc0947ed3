// Package gozk makes a Client of package recipes from a connection of go-zookeeper,
// github.com/go-zookeeper/zk. Errors of the Client are also those of package zk, such as
// zk.ErrNoNode.
package gozk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// Conn has the methods of *zk.Conn that recipes use.
//
// A call blocks until the server answers or the connection gives up on the request. Its error is a
// sentinel of package zk or an error of the network. Safe for concurrent use.
type Conn interface {
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error)
	CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error)
	Delete(path string, version int32) error
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Exists(path string) (bool, *zk.Stat, error)
	ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error)
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	Sync(path string) (string, error)

	AddAuth(scheme string, auth []byte) error
	SessionID() int64
	State() zk.State
	Server() string
}

// Wrap makes a Client from an existing connection of go-zookeeper, and returns when conn has
// answered a request or ctx ends.
//
//	events   the channel that zk.Connect returned with conn; only the Client may read it from now on
//	timeout  the negotiated session timeout, or less; zk.Conn does not report it. If the value is
//	         greater than the negotiated timeout, the Client may notice a lost session too late.
//
// The Client does not close conn. Prefer Connect, whose promises are stronger:
//
//   - How long a session lives after a reconnect is concluded from zk's pings, which may be late.
//   - If a session that was declared lost is still alive, Connect's Client closes that session. A
//     wrapped connection keeps the session: the Client deletes the ephemerals that Create and Multi
//     made in it, and continues with a new Session that has the same ID.
//   - While conn has no server, calls end when conn gives up on them, which takes a second or more
//     with zk's own host provider. A request whose ctx has ended may still be sent, even in the
//     next session.
//   - All watches fire after a reconnect.
func Wrap(
	ctx context.Context, conn Conn, events <-chan zk.Event, timeout time.Duration, opts ...recipes.Option,
) (*recipes.Client, error) {
	return recipes.Wrap(ctx, adapter{conn}, events, timeout, opts...)
}

// adapter makes a recipes.Conn of a Conn.
type adapter struct{ conn Conn }

func (a adapter) Create(path string, data []byte, o client.CreateOptions) (created string, err error) {
	var flags int32
	if o.Ephemeral {
		flags |= zk.FlagEphemeral
	}
	if o.Sequential {
		flags |= zk.FlagSequence
	}
	switch acl := zkACL(o.ACL); {
	case o.Container:
		created, err = a.conn.CreateContainer(path, data, zk.FlagContainer, acl)
	case o.TTL != 0 && o.Sequential:
		created, err = a.conn.CreateTTL(path, data, zk.FlagPersistentSequentialWithTTL, acl, o.TTL)
	case o.TTL != 0:
		created, err = a.conn.CreateTTL(path, data, zk.FlagTTL, acl, o.TTL)
	default:
		created, err = a.conn.Create(path, data, flags, acl)
	}
	return created, convert(err)
}

func (a adapter) Delete(path string, version int32) error {
	return convert(a.conn.Delete(path, version))
}

func (a adapter) Set(path string, data []byte, version int32) (*proto.Stat, error) {
	stat, err := a.conn.Set(path, data, version)
	return protoStat(stat), convert(err)
}

func (a adapter) Get(path string, watch bool) (data []byte, _ *proto.Stat, fires <-chan zk.Event, err error) {
	var stat *zk.Stat
	if watch {
		data, stat, fires, err = a.conn.GetW(path)
	} else {
		data, stat, err = a.conn.Get(path)
	}
	return data, protoStat(stat), fires, convert(err)
}

func (a adapter) Exists(path string, watch bool) (there bool, _ *proto.Stat, fires <-chan zk.Event, err error) {
	var stat *zk.Stat
	if watch {
		there, stat, fires, err = a.conn.ExistsW(path)
	} else {
		there, stat, err = a.conn.Exists(path)
	}
	return there, protoStat(stat), fires, convert(err)
}

func (a adapter) Children(
	path string, watch bool,
) (names []string, _ *proto.Stat, fires <-chan zk.Event, err error) {
	var stat *zk.Stat
	if watch {
		names, stat, fires, err = a.conn.ChildrenW(path)
	} else {
		names, stat, err = a.conn.Children(path)
	}
	return names, protoStat(stat), fires, convert(err)
}

func (a adapter) Multi(ops []client.Op) ([]client.Result, error) {
	requests := make([]any, len(ops))
	for i := range ops {
		switch r := &ops[i].Request; r.Op {
		case proto.OpCreate:
			requests[i] = &zk.CreateRequest{Path: r.Path, Data: r.Data, Acl: zkACL(r.ACL), Flags: int32(r.Mode)}
		case proto.OpSetData:
			requests[i] = &zk.SetDataRequest{Path: r.Path, Data: r.Data, Version: r.Version}
		case proto.OpDelete:
			requests[i] = &zk.DeleteRequest{Path: r.Path, Version: r.Version}
		case proto.OpCheck:
			requests[i] = &zk.CheckVersionRequest{Path: r.Path, Version: r.Version}
		default:
			return nil, fmt.Errorf("%w: go-zookeeper has no %v in a multi", proto.ErrBadArguments, r.Op)
		}
	}
	answers, err := a.conn.Multi(requests...)
	var results []client.Result
	for _, answer := range answers {
		r := client.Result{Path: answer.String, Err: convert(answer.Error)}
		if answer.Stat != nil {
			r.Stat = *protoStat(answer.Stat)
		}
		results = append(results, r)
	}
	return results, convert(err)
}

func (a adapter) Sync(path string) error {
	_, err := a.conn.Sync(path)
	return convert(err)
}

func (a adapter) AddAuth(scheme string, auth []byte) error {
	return convert(a.conn.AddAuth(scheme, auth))
}

func (a adapter) Session() (id int64, server string) {
	if a.conn.State() == zk.StateHasSession {
		server = a.conn.Server()
	}
	return a.conn.SessionID(), server
}

func (a adapter) Event(e zk.Event) client.Event {
	converted := client.Event{Type: proto.EventType(e.Type), Path: e.Path}
	if e.Type != zk.EventSession {
		return converted
	}
	switch e.State {
	case zk.StateHasSession:
		converted.State = client.Connected
	case zk.StateDisconnected, zk.StateConnecting:
		converted.State = client.Connecting
	case zk.StateExpired:
		converted.State = client.Expired
	default:
		return client.Event{} // says nothing of the session
	}
	return converted
}

func zkACL(acl []proto.ACL) []zk.ACL {
	all := make([]zk.ACL, 0, len(acl))
	for _, a := range acl {
		all = append(all, zk.ACL{Perms: int32(a.Perms), Scheme: a.ID.Scheme, ID: a.ID.ID})
	}
	return all
}

func protoStat(s *zk.Stat) *proto.Stat {
	if s == nil {
		return nil
	}
	return &proto.Stat{
		Czxid: proto.Zxid(s.Czxid), Mzxid: proto.Zxid(s.Mzxid), CtimeMs: s.Ctime, MtimeMs: s.Mtime,
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: proto.SessionID(s.EphemeralOwner), DataLength: s.DataLength,
		NumChildren: s.NumChildren, Pzxid: proto.Zxid(s.Pzxid),
	}
}

// convert converts an error of go-zookeeper to one of recipes.Conn. go-zookeeper reports a
// lost connection as ErrConnectionClosed for requests that wait for their answer, ErrNoServer for
// requests that were never sent, ErrSessionExpired for requests that waited when the session ended,
// and the plain network error if writing failed. Its other errors become their codes; a code for
// which it has no error is only in the text.
func convert(err error) error {
	var (
		netErr net.Error
		errno  syscall.Errno
	)
	for code := proto.ErrThrottledOp; err != nil && code < proto.OK; code++ {
		if errors.Is(code, err) {
			err = code
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoServer):
		return recipes.ErrNoServer
	case errors.Is(err, zk.ErrClosing):
		return recipes.ErrClosed
	case errors.Is(err, zk.ErrSessionExpired), errors.As(err, &netErr), errors.As(err, &errno), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", proto.ErrConnectionLoss, err)
	}
	if text, ok := strings.CutPrefix(err.Error(), "unknown error: "); ok {
		if code, e := strconv.ParseInt(text, 10, 32); e == nil {
			return proto.ErrCode(code)
		}
	}
	return err
}
