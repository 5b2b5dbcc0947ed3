package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// AnyVersion is the version of a write that matches every version.
const AnyVersion int32 = -1

// Delete deletes a znode without children if its data has that version.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.doPath(ctx, proto.OpDelete, path, func(full string) request {
		return request{body: (&proto.PathVersionRequest{Path: full, Version: version}).Append}
	}, nil)
}

// Exists returns the Stat of a znode and whether it exists; a missing znode is no error. A watch
// fires when the znode is created, changed or deleted.
func (c *Client) Exists(ctx context.Context, path string, watch bool) (proto.Stat, bool, error) {
	var stat proto.Stat
	err := c.doPath(ctx, proto.OpExists, path, readOf(watch, watchExists), stat.Decode)
	var e *Error
	switch {
	case err == nil:
		return stat, true, nil
	case errors.As(err, &e) && e.Code == proto.ErrNoNode:
		return proto.Stat{}, false, nil
	default:
		return proto.Stat{}, false, err
	}
}

// readOf returns the request of a read of a znode that may set a watch.
func readOf(watch bool, kind watchKind) func(full string) request {
	return func(full string) request {
		return request{body: (&proto.PathWatchRequest{Path: full, Watch: watch}).Append, watch: watchIf(watch, full, kind)}
	}
}

// Get returns a znode's data, which the caller owns, and its Stat. nil and empty data differ, as
// they do in Create. A watch fires when the znode is changed or deleted.
func (c *Client) Get(ctx context.Context, path string, watch bool) ([]byte, proto.Stat, error) {
	full, err := c.full(proto.OpGetData, path)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	return c.get(ctx, path, full, watch)
}

// get is Get with a path of the server.
func (c *Client) get(ctx context.Context, path, full string, watch bool) ([]byte, proto.Stat, error) {
	r := readOf(watch, watchData)(full)
	r.op, r.path = proto.OpGetData, path
	var resp proto.DataResponse
	if err := c.do(ctx, r, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Data, resp.Stat, nil
}

// Set replaces a znode's data if it has that version, and returns the new Stat.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (stat proto.Stat, err error) {
	err = c.doPath(ctx, proto.OpSetData, path, func(full string) request {
		return request{body: (&proto.SetDataRequest{Path: full, Data: data, Version: version}).Append}
	}, stat.Decode)
	return stat, err
}

// Children returns the names of a znode's children, unsorted, and the znode's Stat. A watch fires
// when a child is created or deleted, or the znode is deleted.
func (c *Client) Children(ctx context.Context, path string, watch bool) ([]string, proto.Stat, error) {
	var resp proto.ChildrenResponse
	err := c.doPath(ctx, proto.OpGetChildren2, path, readOf(watch, watchChildren),
		func(d *jute.Decoder) { resp.Decode(d, proto.OpGetChildren2) })
	if err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Children, resp.Stat, nil
}

// pathOf returns the request of an operation whose body is the path alone.
func pathOf(full string) request { return request{body: (&proto.PathRequest{Path: &full}).Append} }

// ChildrenCount returns the number of znodes below path, at all depths.
func (c *Client) ChildrenCount(ctx context.Context, path string) (int, error) {
	var resp proto.IntResponse
	err := c.doPath(ctx, proto.OpGetAllChildrenNumber, path, pathOf, resp.Decode)
	return int(resp.Value), err
}

// Sync returns when the server has caught up with everything that was committed before the call, so
// that later reads see it. The result is the path.
func (c *Client) Sync(ctx context.Context, path string) (string, error) {
	var resp proto.PathRequest
	if err := c.doPath(ctx, proto.OpSync, path, pathOf, resp.Decode); err != nil || resp.Path == nil {
		return "", err
	}
	return c.strip(*resp.Path), nil
}

const (
	minSeek = 100 * time.Millisecond
	maxSeek = time.Minute
)

// seekQuorum asks the other servers in turn, with growing pauses between rounds, until one of them
// has a quorum. Then it breaks the link and returns that server. The end of ctx ends the search.
func (c *Client) seekQuorum(ctx context.Context, l *link, servers []string) string {
	for pause := minSeek; backoff.Sleep(ctx, pause); pause = min(2*pause, maxSeek) {
		for _, address := range servers {
			if address != l.address && c.hasQuorum(ctx, address) {
				l.fail(errBetterServer)
				return address
			}
		}
	}
	return ""
}

// hasQuorum asks a server with the four-letter word isro. One that cannot be asked has no quorum.
func (c *Client) hasQuorum(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, address)
	if err != nil {
		return false
	}
	interrupt := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the error does not matter
	defer func() { _ = conn.Close() }()
	defer interrupt()
	if _, err := io.WriteString(conn, "isro"); err != nil {
		return false
	}
	var answer [2]byte
	_, err = io.ReadFull(conn, answer[:])
	return err == nil && string(answer[:]) == "rw"
}

// CreateOptions say what to create. The zero value is a persistent znode with an open ACL.
type CreateOptions struct {
	Ephemeral  bool // deleted when the session ends
	Sequential bool // the server appends a number of ten digits to the name
	Container  bool // deleted some time after its last child
	// If not 0, deleted when it has no children and has not changed for this long; in whole ms.
	TTL time.Duration
	ACL []proto.ACL // nil: world:anyone:cdrwa
	// NoStat asks for no Stat of the new znode, which ZooKeeper 3.4 cannot return.
	NoStat bool
}

var errMixedKinds = errors.New("a znode is one of ephemeral, container or with a TTL, and a container is not sequential")

func (o CreateOptions) mode() (proto.OpCode, proto.CreateMode, error) {
	create := proto.OpCreate2
	if o.NoStat {
		create = proto.OpCreate
	}
	switch {
	case o.Ephemeral && (o.Container || o.TTL != 0), o.Container && (o.Sequential || o.TTL != 0):
		return 0, 0, errMixedKinds
	case o.TTL != 0 && o.TTL < time.Millisecond:
		return 0, 0, fmt.Errorf("a TTL of %v is less than a millisecond", o.TTL)
	case o.Container:
		return proto.OpCreateContainer, proto.ModeContainer, nil
	case o.TTL != 0 && o.Sequential:
		return proto.OpCreateTTL, proto.ModePersistentSequentialTTL, nil
	case o.TTL != 0:
		return proto.OpCreateTTL, proto.ModePersistentTTL, nil
	case o.Ephemeral && o.Sequential:
		return create, proto.ModeEphemeralSequential, nil
	case o.Ephemeral:
		return create, proto.ModeEphemeral, nil
	case o.Sequential:
		return create, proto.ModePersistentSequential, nil
	default:
		return create, proto.ModePersistent, nil
	}
}

// ttlMs returns the TTL in milliseconds, rounded up so that no znode is deleted early.
func (o CreateOptions) ttlMs() int64 {
	if o.TTL > math.MaxInt64-time.Millisecond {
		return int64(o.TTL / time.Millisecond)
	}
	return int64((o.TTL + time.Millisecond - 1) / time.Millisecond)
}

func (o CreateOptions) acl() []proto.ACL {
	if o.ACL == nil {
		return proto.OpenACL()
	}
	return o.ACL
}

// Create creates a znode and returns its Stat and its path, which includes the number of a
// sequential znode. It does not retain data; nil and empty data differ.
func (c *Client) Create(ctx context.Context, path string, data []byte, o CreateOptions) (created string, stat proto.Stat, err error) {
	op, mode, err := o.mode()
	if err != nil {
		return "", stat, c.refuse(proto.OpCreate2, path, err)
	}
	full, err := c.newPath(op, path, o.Sequential)
	if err != nil {
		return "", stat, err
	}
	req := proto.CreateRequest{Path: full, Data: data, ACL: o.acl(), Mode: mode, TTL: o.ttlMs()}
	var resp proto.CreateResponse
	err = c.do(ctx, request{op: op, path: path, body: func(b []byte) []byte { return req.Append(b, op) }},
		func(d *jute.Decoder) { resp.Decode(d, op) })
	if err != nil {
		return "", proto.Stat{}, err
	}
	return c.strip(resp.Path), resp.Stat, nil
}
