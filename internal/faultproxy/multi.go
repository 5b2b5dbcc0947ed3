package faultproxy

import "github.com/gozkd/gozkd/proto"

// failedMulti returns the body of the answer to a multi that fails with code, or nil if the code goes into the header of the
// answer.
//
// A server answers OK to a multi in which an op failed, and says in the body what became of each op: those before were rolled
// back, the one that failed has its code, those behind were not tried. kazoo makes a list of results of that and an exception of
// an error in the header; go-zookeeper, Java and C take either for the error, Java and C with results only from a body. So
// programs see here what they would see of a server: the op that failed is the first one that the prefix selects. Errors
// that no single op can have are in the header, as is any error of a multiRead, whose other ops would have to be answered.
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

// ofOneOp reports whether a server gives the code to an op within a multi.
func ofOneOp(code proto.ErrCode) bool {
	switch code {
	case proto.ErrNoNode, proto.ErrNoAuth, proto.ErrBadVersion, proto.ErrNoChildrenForEphemerals, proto.ErrNodeExists,
		proto.ErrNotEmpty, proto.ErrInvalidACL, proto.ErrBadArguments, proto.ErrEphemeralOnLocalSession, proto.ErrQuotaExceeded,
		proto.ErrUnimplemented:
		return true
	}
	return false
}
