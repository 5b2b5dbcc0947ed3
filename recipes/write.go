package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// Set replaces the data of a znode if it has that version; -1 is any. data is not kept.
//
// If an answer was lost and the znode then has the next version and this data, that counts as done: somebody else may have written the same
// in that moment. If others have changed it further by then, or deleted it, nobody can know, and the error's Unknown is set. With version
// -1 it is set again.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (stat *zk.Stat, err error) {
	k, full, data := c.core, c.absolute(path), nonNil(data)
	err = c.retry(ctx, "set", path, func(ctx context.Context, before bool) (err error) {
		stat, err = call(ctx, k, func() (*zk.Stat, error) { return k.conn.Set(full, data, version) }, nil)
		switch {
		case before && errors.Is(err, zk.ErrNoNode):
			return &ambiguousError{err}
		case !before || !errors.Is(err, zk.ErrBadVersion):
			return err
		}
		n, readErr := call(ctx, k, func() (readResult, error) { return k.get(full) }, nil)
		switch {
		case readErr != nil && classify(readErr) != answered:
			return readErr
		case readErr != nil || n.stat.Version != version+1: // others have been there since
			return &ambiguousError{err}
		case !bytes.Equal(n.data, data):
			return err
		}
		stat = n.stat
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stat, nil
}

// Delete deletes a znode without children if it has that version; -1 is any. If an answer was lost and the znode is then not there, that
// counts as done; if it is there and can't be deleted, it may be another, and the error's Unknown is set.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	full := c.absolute(path)
	return c.retry(ctx, "delete", path, func(ctx context.Context, before bool) error {
		err := c.core.delete(ctx, full, version)
		switch {
		case before && errors.Is(err, zk.ErrNoNode):
			return nil
		case before && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNotEmpty)): // of another by now, perhaps
			return &ambiguousError{err}
		}
		return err
	})
}

// DeleteGuaranteed deletes a znode, also when it could not be done before ctx ended or the policy had enough: then it goes on in the
// background until it is done, or the server refuses, or the Client is closed, and the error, with Unknown set, says why it was not waited for.
// An ephemeral of another session is left alone. It is not an error if the znode is not there. For names that are not used again.
func (c *Client) DeleteGuaranteed(ctx context.Context, path string) error {
	full := c.absolute(path)
	session := c.core.currentSession().ID()
	if !c.core.beginCall(ctx) {
		return &Error{"delete", path, ErrClosed, false}
	}
	defer c.core.calls.done()
	err := c.retry(ctx, "delete", path, func(ctx context.Context, _ bool) error {
		return ignoreNoNode(c.core.deleteOwn(ctx, full, session))
	})
	var e *Error
	if errors.As(err, &e) && classify(e.Err) != answered {
		e.Unknown = true
		c.core.background(func(ctx context.Context) {
			c.core.retryInBackground(ctx, "delete", full, func(ctx context.Context) error {
				return ignoreNoNode(c.core.deleteOwn(ctx, full, session))
			})
		})
	}
	return err
}

// Multi carries out all ops or none: *zk.CreateRequest, *zk.SetDataRequest, *zk.DeleteRequest and *zk.CheckVersionRequest, with paths of the
// namespace. A create without an ACL gets the Client's. It is tried again only when it surely was not sent; when its answer was lost, the error's Unknown is set.
func (c *Client) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	k := c.core
	absolute, err := c.absoluteOps(ops)
	if err != nil {
		return nil, err
	}
	var results []zk.MultiResponse
	err = c.retry(ctx, "multi", c.absolute("/"), func(ctx context.Context, before bool) (err error) {
		if before {
			return errNotRepeatable
		}
		results, err = call(ctx, k, func() ([]zk.MultiResponse, error) {
			results, err := k.conn.Multi(absolute...)
			k.trackMulti(absolute, results, err)
			return results, err
		}, nil)
		return err
	})
	if errors.Is(err, errNotRepeatable) {
		return nil, &Error{"multi", c.absolute("/"), zk.ErrConnectionClosed, true}
	}
	for i := range results {
		results[i].String = c.relative(results[i].String)
	}
	return results, err
}

// noteMulti notes what became of ephemerals, also if nobody waits for the answer. If that was lost, those may be there that have their names already.
func (k *core) trackMulti(ops []any, results []zk.MultiResponse, err error) {
	done := err == nil && len(results) == len(ops)
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			switch {
			case done && (op.Flags == zk.FlagEphemeral || op.Flags == zk.FlagEphemeralSequential):
				k.rememberEphemeral(results[i].String)
			case classify(err) == replyLost && op.Flags == zk.FlagEphemeral:
				k.rememberEphemeral(op.Path)
			}
		case *zk.DeleteRequest:
			if done {
				k.forgetEphemeral(op.Path)
			}
		}
	}
}

// errLostBefore ends the tries of what cannot be tried again.
var errNotRepeatable = errors.New("recipes: the answer was lost")

// absoluteOps returns ops with the server's paths. The caller's are not changed.
func (c *Client) absoluteOps(ops []any) ([]any, error) {
	absolute := make([]any, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			r := *op
			r.Path = c.absolute(r.Path)
			if r.Acl == nil {
				r.Acl = c.core.cfg.acl
			}
			r.Data = nonNil(r.Data)
			absolute[i] = &r
		case *zk.SetDataRequest:
			r := *op
			r.Path, r.Data = c.absolute(r.Path), nonNil(r.Data)
			absolute[i] = &r
		case *zk.DeleteRequest:
			r := *op
			r.Path = c.absolute(r.Path)
			absolute[i] = &r
		case *zk.CheckVersionRequest:
			r := *op
			r.Path = c.absolute(r.Path)
			absolute[i] = &r
		default:
			return nil, fmt.Errorf("recipes: multi: op %d is a %T", i, op)
		}
	}
	return absolute, nil
}

// written returns data as they are written: there is no null, which the protocol knows besides empty data. Curator and kazoo never write
// it, and stumble over it when they read: kazoo's Semaphore over the data of a parent that we have made.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

func (k *core) delete(ctx context.Context, full string, version int32) error {
	_, err := call(ctx, k, func() (struct{}, error) { return struct{}{}, k.conn.Delete(full, version) }, nil)
	if err == nil {
		k.forgetEphemeral(full)
	}
	return err
}

// deleteOwn deletes a znode unless it is an ephemeral of another session.
func (k *core) deleteOwn(ctx context.Context, full string, session int64) error {
	if s := k.currentSession(); s.ID() != session || s.ended.Load() {
		n, err := call(ctx, k, func() (readResult, error) { return k.exists(full) }, nil)
		if err != nil || !n.exists || n.stat.EphemeralOwner != 0 && n.stat.EphemeralOwner != session {
			return err
		}
	}
	return k.delete(ctx, full, -1)
}

// Insisting goes on for as long as the connection is lost; the pause between two tries grows from the first to the last.
const (
	minBackgroundPause = 100 * time.Millisecond
	maxBackgroundPause = 5 * time.Second
)

// insist tries something until the server has answered it, or ctx ends.
func (k *core) retryInBackground(ctx context.Context, op, full string, try func(context.Context) error) {
	for wait := minBackgroundPause; ; wait = min(2*wait, maxBackgroundPause) {
		err := try(ctx)
		if err == nil {
			return
		}
		if c := classify(err); c == answered || c == stopped {
			k.cfg.logger.Printf("%s %s in the background: %v", op, full, err)
			return
		}
		if k.sleep(ctx, wait) != nil {
			k.cfg.logger.Printf("%s %s in the background: not done when the client was closed", op, full)
			return
		}
	}
}
