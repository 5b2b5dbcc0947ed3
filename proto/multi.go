package proto

import (
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/proto/jute"
)

// ErrNotInMulti is wrapped by the error for a multi that contains a forbidden operation.
var ErrNotInMulti = errors.New("proto: op not allowed in this multi")

// AppendMultiHeader appends the header of an op or result in a multi. done marks the terminator.
func AppendMultiHeader(b []byte, op OpCode, done bool, err ErrCode) []byte {
	return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, int32(op)), done), int32(err))
}

// MultiOp is an operation of a multi or multiRead. Fields that Op does not have are zero.
//
//	create, create2, createContainer, createTTL  Path Data ACL Mode TTL
//	delete, check                                Path Version
//	setData                                      Path Data Version
//	getData, getChildren                         Path Watch (ignored by servers)
type MultiOp struct {
	Op      OpCode
	Path    string
	Data    []byte
	ACL     []ACL
	Mode    CreateMode
	TTL     int64
	Version int32
	Watch   bool
}

// MultiRequest is the body of multi and multiRead.
type MultiRequest struct{ Ops []MultiOp }

// Append appends the encoding, terminator included. An op that no multi has gets only a header.
func (r *MultiRequest) Append(b []byte) []byte {
	for i := range r.Ops {
		op := &r.Ops[i]
		b = AppendMultiHeader(b, op.Op, false, -1)
		switch op.Op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			b = (&CreateRequest{Path: op.Path, Data: op.Data, ACL: op.ACL, Mode: op.Mode, TTL: op.TTL}).Append(b, op.Op)
		case OpDelete, OpCheck:
			b = (&PathVersionRequest{op.Path, op.Version}).Append(b)
		case OpSetData:
			b = (&SetDataRequest{op.Path, op.Data, op.Version}).Append(b)
		case OpGetData, OpGetChildren:
			b = (&PathWatchRequest{op.Path, op.Watch}).Append(b)
		}
	}
	return AppendMultiHeader(b, -1, true, -1)
}

// Decode reads the body of op, which is multi or multiRead. The error is the decoder's, or wraps
// ErrNotInMulti: an operation is unknown, must not be in a multi, reads in a multi or writes in a
// multiRead, or creates a null path.
func (r *MultiRequest) Decode(d *jute.Decoder, op OpCode) error {
	r.Ops = r.Ops[:0]
	for {
		code, done, _ := OpCode(d.Int()), d.Bool(), d.Int()
		if d.Err() != nil {
			return d.Err()
		}
		if done { // like ZooKeeper, ignore type and err of the terminator
			return nil
		}
		m := MultiOp{Op: code}
		switch {
		case op == OpMultiRead && (code == OpGetData || code == OpGetChildren):
			var w PathWatchRequest
			w.Decode(d)
			m.Path, m.Watch = w.Path, w.Watch
		case op == OpMulti && code.Info().Group == "create":
			var c CreateRequest
			c.Decode(d, code)
			if c.NullPath {
				return fmt.Errorf("%w: %v with a null path", ErrNotInMulti, code)
			}
			m.Path, m.Data, m.ACL, m.Mode, m.TTL = c.Path, c.Data, c.ACL, c.Mode, c.TTL
		case op == OpMulti && (code == OpDelete || code == OpCheck):
			var v PathVersionRequest
			v.Decode(d)
			m.Path, m.Version = v.Path, v.Version
		case op == OpMulti && code == OpSetData:
			// Unlike in a setData outside a multi, a null path is an error.
			m.Path, m.Data, m.Version = d.RequiredString(), d.Buffer(), d.Int()
		default:
			return fmt.Errorf("%w: %v in %v", ErrNotInMulti, code, op)
		}
		if d.Err() != nil {
			return d.Err()
		}
		r.Ops = append(r.Ops, m)
	}
}

// MultiResult is the result of an operation of a multi or multiRead. Op is the type of the result:
// create or create2 for all kinds of create, error (-1) if Err replaces the result.
type MultiResult struct {
	Op       OpCode
	Err      ErrCode // only if Op is error; OK then means rolled back
	Path     string
	Stat     Stat
	Data     []byte
	Children []string
}

// AppendFailedMulti appends the results of a multi of n operations whose operation at index failed
// has failed with code: earlier operations were rolled back, later ones were not tried.
func AppendFailedMulti(results []MultiResult, n, failed int, code ErrCode) []MultiResult {
	for i := range n {
		res := MultiResult{Op: OpError}
		switch {
		case i == failed:
			res.Err = code
		case i > failed:
			res.Err = ErrRuntimeInconsistency
		}
		results = append(results, res)
	}
	return results
}

// MultiResponse is the response of multi and multiRead.
type MultiResponse struct{ Results []MultiResult }

// Append appends the encoding, terminator included.
func (r *MultiResponse) Append(b []byte) []byte {
	for i := range r.Results {
		res := &r.Results[i]
		b = AppendMultiHeader(b, res.Op, false, res.Err)
		switch res.Op {
		case OpError:
			b = jute.AppendInt(b, int32(res.Err))
		case OpCreate, OpCreate2:
			b = (&CreateResponse{res.Path, res.Stat}).Append(b, res.Op)
		case OpSetData:
			b = res.Stat.Append(b)
		case OpGetData:
			b = (&DataResponse{res.Data, res.Stat}).Append(b)
		case OpGetChildren:
			b = jute.AppendStrings(b, res.Children)
		}
	}
	return AppendMultiHeader(b, -1, true, -1)
}

// Decode reads the record. The error is the decoder's, or names an unknown type of result.
func (r *MultiResponse) Decode(d *jute.Decoder) error { return r.DecodeAtMost(d, d.Remaining()) }

// DecodeAtMost is Decode with an error for a record with more than limit results, each of which
// takes more memory than bytes in the record.
func (r *MultiResponse) DecodeAtMost(d *jute.Decoder, limit int) error {
	r.Results = nil
	for {
		code, done, err := OpCode(d.Int()), d.Bool(), ErrCode(d.Int())
		if d.Err() != nil || done {
			return d.Err()
		}
		if len(r.Results) == limit {
			return fmt.Errorf("proto: a multi with more than %d results", limit)
		}
		res := MultiResult{Op: code, Err: err}
		switch code {
		case OpError:
			res.Err = ErrCode(d.Int())
		case OpCreate, OpCreate2:
			var c CreateResponse
			c.Decode(d, code)
			res.Path, res.Stat = c.Path, c.Stat
		case OpDelete, OpCheck:
		case OpSetData:
			res.Stat.Decode(d)
		case OpGetData:
			var g DataResponse
			g.Decode(d)
			res.Data, res.Stat = g.Data, g.Stat
		case OpGetChildren:
			res.Children = d.Strings()
		default:
			return fmt.Errorf("%w: result type %v", ErrNotInMulti, code)
		}
		if d.Err() != nil {
			return d.Err()
		}
		r.Results = append(r.Results, res)
	}
}
