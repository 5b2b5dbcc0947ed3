package datatree

import "github.com/gozkd/gozkd/proto"

// applyMulti executes all operations or none. Each operation sees the effects of those before it. A
// multi that cannot be decoded, or with an operation that fails with ErrMarshallingError, fails as
// a whole. Any other failure is in the results: OK for operations rolled back, the code of the
// failed operation, and ErrRuntimeInconsistency for later operations.
func (t *Tree) applyMulti(x *txn) proto.ErrCode {
	defer func() { t.multi.Ops = reuse(t.multi.Ops) }() // drops the references to the body
	if t.multi.Decode(t.body(x), proto.OpMulti) != nil {
		return proto.ErrMarshallingError
	}
	ops := t.multi.Ops
	for i := range ops {
		if !deriveOp(&ops[i]) {
			return proto.ErrMarshallingError
		}
	}

	t.results = reuse(t.results)
	if failed, code := t.runMulti(x, ops); code != proto.OK {
		t.rollback()
		t.events = t.events[:0]
		// An unreadable limits znode, or jute.maxbuffer.
		if code == proto.ErrMarshallingError {
			return code
		}
		t.results = proto.AppendFailedMulti(t.results[:0], len(ops), failed, code)
		x.res.MultiFailed = true
	}
	t.commit()
	x.res.Multi = t.results
	return proto.OK
}

// runMulti executes operations until one fails, and returns the index and the code of that one. If
// their sum is refused, the one that fails is the first that made the state grow for good.
func (t *Tree) runMulti(x *txn, ops []proto.MultiOp) (failed int, code proto.ErrCode) {
	t.inMulti = true
	t.grown = 0
	grower := 0
	for i := range ops {
		if i%PrefetchPaths == 0 {
			t.prefetchOps(ops[i:])
		}
		res := t.multiOp(x, &ops[i])
		if res.Op == proto.OpError {
			return i, res.Err
		}
		if t.grown <= 0 {
			grower = i + 1
		}
		t.results = append(t.results, res)
	}
	return grower, t.multiMayGrow(x)
}

func (t *Tree) multiOp(x *txn, op *proto.MultiOp) proto.MultiResult {
	res := proto.MultiResult{Op: op.Op}
	var code proto.ErrCode
	switch op.Op {
	case proto.OpCreate:
		res.Path, _, code = t.createZnode(x, op)
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		res.Op = proto.OpCreate2
		res.Path, res.Stat, code = t.createZnode(x, op)
	case proto.OpDelete:
		code = t.deleteZnode(x, op.Path, op.Version)
	case proto.OpSetData:
		res.Stat, code = t.setZnodeData(x, op.Path, op.Data, op.Version)
	case proto.OpCheck:
		code = t.check(x, op.Path, op.Version)
	}
	if code != proto.OK {
		return proto.MultiResult{Op: proto.OpError, Err: code}
	}
	return res
}

// deriveOp makes the op code of a create agree with its mode, as ZooKeeper does in a multi only,
// and reports whether it is well-formed: an unknown mode, a mode that needs a TTL, or a null ACL
// fail the multi as a whole, except in a createTTL. Source: MultiOperationRecord, Op.Create;
// behavior of 3.9.5.
func deriveOp(op *proto.MultiOp) bool {
	switch op.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer:
		if !op.Mode.Valid() || op.Mode.TTL() || op.ACL == nil {
			return false
		}
	case proto.OpCreateTTL:
		if op.Mode.Valid() && !op.Mode.TTL() {
			op.Op = proto.OpCreate
		}
	default:
		return true
	}
	if op.Mode == proto.ModeContainer {
		op.Op = proto.OpCreateContainer
	}
	return true
}
