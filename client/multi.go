package client

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Op is an operation of Multi or MultiRead, made by the functions below.
type Op struct {
	Request proto.MultiOp // with the path that the function was given; the ACL nil if open
	err     error
}

// CreateOp creates a znode; see Client.Create.
func CreateOp(path string, data []byte, o CreateOptions) Op {
	op, mode, err := o.mode()
	return Op{proto.MultiOp{Op: op, Path: path, Data: data, ACL: o.ACL, Mode: mode, TTL: o.ttlMs()}, err}
}

// DeleteOp deletes a znode; see Client.Delete.
func DeleteOp(path string, version int32) Op {
	return Op{Request: proto.MultiOp{Op: proto.OpDelete, Path: path, Version: version}}
}

// SetOp replaces a znode's data; see Client.Set.
func SetOp(path string, data []byte, version int32) Op {
	return Op{Request: proto.MultiOp{Op: proto.OpSetData, Path: path, Data: data, Version: version}}
}

// CheckOp makes the Multi fail unless the znode exists with that version.
func CheckOp(path string, version int32) Op {
	return Op{Request: proto.MultiOp{Op: proto.OpCheck, Path: path, Version: version}}
}

// GetOp reads a znode's data and Stat. For MultiRead.
func GetOp(path string) Op { return Op{Request: proto.MultiOp{Op: proto.OpGetData, Path: path}} }

// ChildrenOp reads the names of a znode's children. For MultiRead.
func ChildrenOp(path string) Op {
	return Op{Request: proto.MultiOp{Op: proto.OpGetChildren, Path: path}}
}

// Result is that of an operation in a Multi or MultiRead. Fields that it does not have are zero.
type Result struct {
	// Err is nil or an *Error. A failed Multi executes nothing: operations before the failed
	// operation have nil, operations after it have proto.ErrRuntimeInconsistency.
	Err      error
	Path     string     // of a created znode
	Stat     proto.Stat // after create, set and get; servers before 3.8.2 omit it after create
	Data     []byte     // of get
	Children []string   // of children, unsorted
}

// Multi executes all operations in order, or none. If one fails, the error is that operation's
// error, and the results show which operation failed. Only writes and checks are allowed.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	return c.multi(ctx, proto.OpMulti, ops)
}

// MultiRead executes several reads with one request, not necessarily at the same moment. The
// failure of a read is in its result; the error is that of the whole request.
func (c *Client) MultiRead(ctx context.Context, ops ...Op) ([]Result, error) {
	return c.multi(ctx, proto.OpMultiRead, ops)
}

func (c *Client) multi(ctx context.Context, op proto.OpCode, ops []Op) (results []Result, err error) {
	req := proto.MultiRequest{Ops: make([]proto.MultiOp, len(ops))}
	for i := range ops {
		o := &ops[i]
		if o.err != nil {
			return nil, c.refuse(o.Request.Op, o.Request.Path, o.err)
		}
		if reads := o.Request.Op == proto.OpGetData || o.Request.Op == proto.OpGetChildren; reads != (op == proto.OpMultiRead) {
			return nil, c.refuse(op, o.Request.Path, fmt.Errorf("%w: %v", proto.ErrNotInMulti, o.Request.Op))
		}
		full, err := c.newPath(o.Request.Op, o.Request.Path, o.Request.Mode&proto.ModePersistentSequential != 0)
		if err != nil {
			return nil, err
		}
		req.Ops[i] = o.Request
		if req.Ops[i].Path = full; o.Request.ACL == nil {
			req.Ops[i].ACL = proto.OpenACL()
		}
	}
	var resp proto.MultiResponse
	var bad error
	err = c.do(ctx, request{op: op, body: req.Append, outcome: func() (failed error) {
		if bad == nil && len(resp.Results) != len(ops) {
			bad = fmt.Errorf("%d results for %d ops", len(resp.Results), len(ops))
		}
		if bad != nil {
			return &Error{Op: op.String(), Code: proto.ErrMarshallingError, Cause: bad, Unknown: op.Info().Write}
		}
		results = make([]Result, len(ops))
		for i := range resp.Results {
			results[i] = c.result(&ops[i], &resp.Results[i])
			if failed == nil && op == proto.OpMulti {
				failed = results[i].Err
			}
		}
		return failed
	}}, func(d *jute.Decoder) { bad = resp.DecodeAtMost(d, len(ops)) })
	return results, err
}

func (c *Client) result(op *Op, r *proto.MultiResult) Result {
	if r.Op == proto.OpError && r.Err != proto.OK {
		return Result{Err: &Error{Op: op.Request.Op.String(), Path: op.Request.Path, Code: r.Err}}
	}
	result := Result{Stat: r.Stat, Data: r.Data, Children: r.Children}
	if r.Path != "" {
		result.Path = c.strip(r.Path)
	}
	return result
}
