package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Bounds of a list. ZooKeeper has none except jute.maxbuffer. Each change of a znode's children
// copies the znode's list, and a long list would make each of them expensive.
const (
	MaxACLEntries = 512
	MaxACLBytes   = 32 << 10 // of schemes and ids, and 12 bytes for each entry
)

const (
	// cheapMultiBytes: a shorter multi cannot be expensive.
	cheapMultiBytes = 4 << 10
	// A multi may copy workFactor times jute.maxbuffer: several times what a multi with as many
	// operations as fit does to znodes with short lists and less than 1 KiB of data.
	workFactor = 64
	// opWork is the work of an operation in copied bytes, apart from the znode that it copies.
	opWork = 256
	// minACLEntryBytes is the least length of an entry in a request.
	minACLEntryBytes = 12
)

// Refusal returns the code to answer a client's request with if it must not enter the log because
// applying it would take too long, and the reason for the log; otherwise OK. Only the server of the
// client asks, before it proposes the request: Apply must execute every entry of the log, as
// members of other versions do. maxBuffer is jute.maxbuffer of that server; r.MaxBuffer may be 0.
func (s *znodeStore) Refusal(r *Request, maxBuffer int32) (code proto.ErrCode, why string) {
	switch r.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpSetACL, proto.OpMulti:
	default:
		return proto.OK, ""
	}
	auth := expansion(r.IDs)
	most := len(r.Body) / minACLEntryBytes
	long := most*max(1, auth.entries) > MaxACLEntries || len(r.Body)+most*auth.bytes > MaxACLBytes
	if !long && (r.Op != proto.OpMulti || len(r.Body) <= cheapMultiBytes) {
		return proto.OK, "" // nearly always
	}
	d := jute.NewDecoder(r.Body)
	d.AliasStrings()
	switch r.Op {
	case proto.OpSetACL:
		var s proto.SetACLRequest
		if s.Decode(&d); d.Err() == nil {
			return auth.bound(r.Op, s.Path, s.ACL)
		}
	case proto.OpMulti:
		var m proto.MultiRequest
		if m.Decode(&d, r.Op) == nil {
			return s.multiRefusal(&m, &auth, workFactor*int(maxBuffer))
		}
	default:
		var c proto.CreateRequest
		if c.Decode(&d, r.Op); d.Err() == nil {
			return auth.bound(r.Op, c.Path, c.ACL)
		}
	}
	return proto.OK, "" // Apply answers requests that can't be decoded
}

func (s *znodeStore) multiRefusal(m *proto.MultiRequest, auth *aclSize, limit int) (proto.ErrCode, string) {
	work, own := 0, 0 // own: the longest znode that the multi itself may have made before
	for i := range m.Ops {
		op := &m.Ops[i]
		if code, why := auth.bound(op.Op, op.Path, op.ACL); code != proto.OK {
			return code, why
		}
		work += opWork
		path := op.Path
		switch op.Op {
		case proto.OpCheck:
			continue
		case proto.OpSetData:
		default:
			path = proto.ParentPath(path)
		}
		if n := s.get(path); n != nil {
			work += len(n.blob().text)
		} else {
			work += own
		}
		own = max(own, auth.made(op))
		if work > limit {
			return proto.ErrMarshallingError, fmt.Sprintf("multi of %d operations refused: the first %d would copy %d bytes of the znodes that they change, %d (%d times jute.maxbuffer) are allowed; use several multis",
				len(m.Ops), i+1, work, limit, workFactor)
		}
	}
	return proto.OK, ""
}

type aclSize struct{ entries, bytes int }

func (a *aclSize) add(id proto.ID) {
	a.entries++
	a.bytes += minACLEntryBytes + len(id.Scheme) + len(id.ID)
}

// made returns about the size of the znode that op makes, without large data, which is not copied.
func (a *aclSize) made(op *proto.MultiOp) (bytes int) {
	bytes = len(op.Path) + min(len(op.Data), largeBytes)
	for i := range op.ACL {
		id := &op.ACL[i].ID
		if bytes += minACLEntryBytes + len(id.Scheme) + len(id.ID); id.Scheme == "auth" {
			bytes += a.bytes
		}
	}
	return bytes
}

// expansion returns the size of the entries that replace one with scheme auth, see fixACL.
func expansion(ids []proto.ID) (s aclSize) {
	for _, id := range ids {
		if expands(id) {
			s.add(id)
		}
	}
	return s
}

// expands reports whether auth stands for id, among others.
func expands(id proto.ID) bool {
	return id.Scheme == "digest" || id.Scheme == "x509" || id.Scheme == "sasl"
}

// bound returns OK if a list is not too long after an entry with scheme auth became auth.
func (a *aclSize) bound(op proto.OpCode, path string, list []proto.ACL) (proto.ErrCode, string) {
	var s aclSize
	for _, entry := range list {
		if entry.ID.Scheme == "auth" {
			s.entries += a.entries
			s.bytes += a.bytes
		} else {
			s.add(entry.ID)
		}
	}
	if s.entries <= MaxACLEntries && s.bytes <= MaxACLBytes {
		return proto.OK, ""
	}
	return proto.ErrInvalidACL, fmt.Sprintf("%v of %q refused: its ACL has %d entries with %d bytes, %d with %d are allowed",
		op, path, s.entries, s.bytes, MaxACLEntries, MaxACLBytes)
}
