package recipes

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
)

// Set replaces the data of a znode if the znode has the given version; -1 matches any. If Set
// fails because ctx ended, the request may still be sent, and data must not be modified.
//
// After a lost answer, Set repeats the request only if the znode certainly has not been written
// since: see Error.Unknown and Idempotent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (stat *proto.Stat, err error) {
	k, full, data := c.core, c.absolute(path), nonNil(data)
	before := k.conn.seenZxid()
	r := request{op: "set", path: full, bytes: len(data)}
	err = c.retry(ctx, "set", path, func(ctx context.Context, unknown bool) (err error) {
		if unknown && !c.idempotent {
			if err := k.checkUntouched(ctx, full, before, func(s *proto.Stat) int64 { return int64(s.Mzxid) }); err != nil {
				return err
			}
		}
		stat, err = call(ctx, k, r, func(ctx context.Context) (*proto.Stat, error) {
			return k.conn.set(ctx, full, data, version)
		}, nil)
		if unknown && c.idempotent {
			stat, err = k.resolveSet(ctx, full, data, version, stat, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return stat, nil
}

// resolveSet returns the result of a repeated Set whose latest attempt had the result stat and err.
func (k *core) resolveSet(ctx context.Context, full string, data []byte, version int32, stat *proto.Stat, err error) (*proto.Stat, error) {
	if !errors.Is(err, proto.ErrBadVersion) {
		return stat, ambiguous(err)
	}
	n, readErr := k.read(ctx, readData, full, false)
	switch {
	case readErr != nil && classify(readErr) != answered:
		return nil, readErr
	case readErr != nil || n.stat.Version != version+1: // changed again by others
		return nil, &ambiguousError{err}
	case !bytes.Equal(n.data, data):
		return nil, err
	}
	return n.stat, nil
}

// Delete deletes a znode without children if the znode has the given version; -1 matches any.
//
// After a lost answer, Delete repeats the request only if the znode is there and was not created
// since: see Error.Unknown and Idempotent. If the znode is missing, the error is also
// proto.ErrNoNode.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	k, full := c.core, c.absolute(path)
	before := k.conn.seenZxid()
	return c.retry(ctx, "delete", path, func(ctx context.Context, unknown bool) error {
		if unknown && !c.idempotent {
			if err := k.checkUntouched(ctx, full, before, func(s *proto.Stat) int64 { return int64(s.Czxid) }); err != nil {
				return err
			}
		}
		err := k.delete(ctx, full, version)
		switch {
		case !unknown || !c.idempotent:
			return err
		case errors.Is(err, proto.ErrNoNode):
			return nil
		}
		return ambiguous(err) // perhaps a new znode
	})
}

// DeleteGuaranteed deletes a znode. If ctx ends or the RetryPolicy stops first, the deletion
// continues in the background until the znode is deleted, the server refuses, or the Client is
// closed. The error then has Unknown set and says why the call did not wait. DeleteGuaranteed
// leaves an ephemeral of another session alone. A missing znode is no error. The name must not be
// reused.
func (c *Client) DeleteGuaranteed(ctx context.Context, path string) error {
	full := c.absolute(path)
	session := c.core.currentSession().ID()
	if !c.core.beginCall(ctx) {
		return &Error{"delete", path, ErrClosed, false}
	}
	defer c.core.calls.done()
	try := func(ctx context.Context) error { return ignoreNoNode(c.core.deleteOwn(ctx, full, session)) }
	err := c.retry(ctx, "delete", path, func(ctx context.Context, _ bool) error { return try(ctx) })
	if e, ok := errors.AsType[*Error](err); ok && classify(e.Err) != answered {
		e.Unknown = true
		c.core.retryInBackground("delete", full, try)
	}
	return err
}

// Multi applies all ops or none, with paths of the namespace. A create without an ACL gets the
// Client's. The results have no Stat of a create. Multi retries only if no server can have received
// the request. After a lost answer the error's Unknown is set.
func (c *Client) Multi(ctx context.Context, ops ...client.Op) ([]client.Result, error) {
	k := c.core
	absolute, first, bytes := c.absoluteOps(ops)
	var results []client.Result
	r := request{op: "multi", path: first, bytes: bytes}
	err := c.retry(ctx, "multi", c.absolute("/"), func(ctx context.Context, unknown bool) (err error) {
		if unknown {
			return errNotRepeatable
		}
		results, err = call(ctx, k, r, func(ctx context.Context) ([]client.Result, error) {
			return k.conn.multi(ctx, absolute)
		}, nil)
		return err
	})
	for i := range results {
		results[i].Path = c.relative(results[i].Path)
	}
	return results, err
}

// errNotRepeatable ends the retries of a write whose answer was lost and that cannot be repeated.
var errNotRepeatable error = &ambiguousError{proto.ErrConnectionLoss}

// absoluteOps returns copies of ops with the server's paths, the first of these, and about how many
// bytes they have.
func (c *Client) absoluteOps(ops []client.Op) (absolute []client.Op, first string, bytes int) {
	absolute = slices.Clone(ops)
	for i := range absolute {
		r := &absolute[i].Request
		if r.Path = c.absolute(r.Path); i == 0 {
			first = r.Path
		}
		switch r.Op {
		case proto.OpCreate2, proto.OpCreate, proto.OpCreateContainer, proto.OpCreateTTL:
			if r.Op == proto.OpCreate2 { // servers of ZooKeeper 3.4 know only OpCreate
				r.Op = proto.OpCreate
			}
			if r.ACL == nil {
				r.ACL = c.core.cfg.acl
			}
			fallthrough
		case proto.OpSetData:
			r.Data = nonNil(r.Data)
		}
		bytes += len(r.Path) + len(r.Data)
	}
	return absolute, first, bytes
}

// nonNil replaces nil data by empty data. The protocol distinguishes the two, but Curator and kazoo
// never write null and cannot read null: kazoo's Semaphore, for example, fails if this Client
// created its parent with null.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func ignoreNoNode(err error) error {
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	return err
}

func (k *core) delete(ctx context.Context, full string, version int32) error {
	return k.do(ctx, request{op: "delete", path: full}, func(ctx context.Context) error { return k.conn.delete(ctx, full, version) })
}

// deleteOwn deletes a znode, except an ephemeral of another session.
func (k *core) deleteOwn(ctx context.Context, full string, session int64) error {
	if s := k.currentSession(); s.ID() != session || s.ended.Load() {
		n, err := k.read(ctx, readExists, full, false)
		if err != nil || n.stat == nil || int64(n.stat.EphemeralOwner) != 0 && int64(n.stat.EphemeralOwner) != session {
			return err
		}
	}
	return k.delete(ctx, full, -1)
}

// retryInBackground calls try until the server has answered or the Client is closed, and returns at
// once. Nobody waits for the result, so an error is logged. The caller must be counted in k.calls.
func (k *core) retryInBackground(op, full string, try func(context.Context) error) {
	k.background(func(ctx context.Context) {
		done := backoff.Retry(ctx, func() bool {
			err := try(ctx)
			if err == nil {
				return true
			}
			if c := classify(err); c != answered && c != stopped {
				return false
			}
			k.cfg.log.Warn(op+" in the background", "path", full, "error", err)
			return true
		})
		if !done {
			k.cfg.log.Warn(op+" in the background: not done when the client was closed", "path", full)
		}
	})
}
