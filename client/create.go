package client

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// CreateOptions say what kind of znode to create. The zero value is a persistent znode with an open
// ACL.
type CreateOptions struct {
	Ephemeral  bool // deleted when the session ends
	Sequential bool // the server appends a number of ten digits to the name
	Container  bool // deleted some time after its last child
	// If not 0, deleted when it has no children and was not changed for this long; whole
	// milliseconds.
	TTL time.Duration
	ACL []proto.ACL // nil: world:anyone:cdrwa
}

var errMixedKinds = errors.New("a znode is one of ephemeral, container or with a TTL, and a container is not sequential")

// mode returns the op code and the mode that create such a znode.
func (o CreateOptions) mode() (proto.OpCode, proto.CreateMode, error) {
	kinds := 0
	for _, is := range []bool{o.Ephemeral, o.Container, o.TTL != 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1 || o.Container && o.Sequential:
		return 0, 0, errMixedKinds
	case o.Container:
		return proto.OpCreateContainer, proto.ModeContainer, nil
	case o.TTL != 0 && o.Sequential:
		return proto.OpCreateTTL, proto.ModePersistentSequentialTTL, nil
	case o.TTL != 0:
		return proto.OpCreateTTL, proto.ModePersistentTTL, nil
	case o.Ephemeral && o.Sequential:
		return proto.OpCreate2, proto.ModeEphemeralSequential, nil
	case o.Ephemeral:
		return proto.OpCreate2, proto.ModeEphemeral, nil
	case o.Sequential:
		return proto.OpCreate2, proto.ModePersistentSequential, nil
	default:
		return proto.OpCreate2, proto.ModePersistent, nil
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
