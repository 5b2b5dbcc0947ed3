package faultproxy

import "github.com/gozkd/gozkd/proto"

// failedMulti returns the body of the reply to a multi that fails with code, or nil if the code
// belongs into the header of the reply.
//
// A server replies OK to a multi in which an operation failed, and the body has a result for each
// operation: the operations before the failed operation were rolled back, the failed operation has
// its code, and later operations were not tried. kazoo returns a list of results for such a body
// and raises an exception for an error in the header; go-zookeeper, Java and C report either as the
// error, Java and C with results only from a body. To show programs what a server would, the failed
// operation is the first that the prefix selects. A code that no single operation can have goes
// into the header, as does every error of a multiRead, whose other operations would have to be
// answered.
func failedMulti(r *request, prefix string, code proto.ErrCode) []byte {
	if r.header.Op != proto.OpMulti || r.bytes > maxMultiBytes || !ofOneOp(code) {
		return nil
	}
	ops := r.multi()
	if len(ops) == 0 {
		return nil
	}
	failed := 0
	for i := range ops {
		if prefix != "" && pathHasPrefix(ops[i].Path, prefix) {
			failed = i
			break
		}
	}
	results := make([]proto.MultiResult, len(ops))
	for i := range results {
		results[i] = proto.MultiResult{Op: proto.OpError, Err: proto.OK}
		switch {
		case i == failed:
			results[i].Err = code
		case i > failed:
			results[i].Err = proto.ErrRuntimeInconsistency
		}
	}
	return (&proto.MultiResponse{Results: results}).Append(nil)
}

// ofOneOp reports whether a server gives the code to a single operation of a multi.
func ofOneOp(code proto.ErrCode) bool {
	switch code {
	case proto.ErrNoNode, proto.ErrNoAuth, proto.ErrBadVersion, proto.ErrNoChildrenForEphemerals, proto.ErrNodeExists,
		proto.ErrNotEmpty, proto.ErrInvalidACL, proto.ErrBadArguments, proto.ErrEphemeralOnLocalSession, proto.ErrQuotaExceeded,
		proto.ErrUnimplemented:
		return true
	}
	return false
}
