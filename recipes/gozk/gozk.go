// Package gozk lets recipes.Wrap use a connection of go-zookeeper, github.com/go-zookeeper/zk.
package gozk

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// Conn returns conn for recipes.Wrap, with the channel that zk.Connect returned with conn.
func Conn(conn *zk.Conn) recipes.Conn[zk.Event] { return adapter{conn} }

type adapter struct{ conn *zk.Conn }

func (a adapter) Create(path string, data []byte, o client.CreateOptions) (created string, err error) {
	r := client.CreateOp(path, data, o).Request
	switch flags, acl := int32(r.Mode), zkACL(r.ACL); r.Op {
	case proto.OpCreateContainer:
		created, err = a.conn.CreateContainer(path, data, flags, acl)
	case proto.OpCreateTTL:
		created, err = a.conn.CreateTTL(path, data, flags, acl, o.TTL)
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

func (a adapter) Get(path string, watch bool) ([]byte, *proto.Stat, <-chan zk.Event, error) {
	return read(path, watch, a.conn.Get, a.conn.GetW)
}

// read is Get or Children, by the functions without and with a watch.
func read[T any](
	path string, watch bool, get func(string) (T, *zk.Stat, error), getW func(string) (T, *zk.Stat, <-chan zk.Event, error),
) (v T, _ *proto.Stat, fires <-chan zk.Event, err error) {
	var stat *zk.Stat
	if watch {
		v, stat, fires, err = getW(path)
	} else {
		v, stat, err = get(path)
	}
	return v, protoStat(stat), fires, convert(err)
}

func (a adapter) Exists(path string, watch bool) (*proto.Stat, <-chan zk.Event, error) {
	there, stat, fires, err := read(path, watch, a.conn.Exists, a.conn.ExistsW)
	if !there {
		stat = nil
	}
	return stat, fires, err
}

func (a adapter) Children(path string, watch bool) ([]string, *proto.Stat, <-chan zk.Event, error) {
	return read(path, watch, a.conn.Children, a.conn.ChildrenW)
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
