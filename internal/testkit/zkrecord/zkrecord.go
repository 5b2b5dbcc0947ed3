// Package zkrecord writes the records of ZooKeeper's transaction logs, which tests read back.
package zkrecord

import (
	"hash/adler32"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// AppendToLog appends a record of a log with its checksum.
func AppendToLog(b []byte, r *zkfiles.Record) []byte {
	entry := Append(nil, r)
	b = jute.AppendBuffer(jute.AppendLong(b, int64(adler32.Checksum(entry))), entry)
	return append(b, 'B') // ends each record
}

// Append appends the encoding of an entry of a log, or of a proposal.
func Append(b []byte, r *zkfiles.Record) []byte {
	b = jute.AppendInt(jute.AppendLong(b, int64(r.Session)), r.Cxid)
	b = jute.AppendLong(jute.AppendLong(b, int64(r.Zxid)), r.TimeMs)
	b = AppendTxn(jute.AppendInt(b, int32(r.Txn.Op)), &r.Txn)
	if r.HasDigest {
		b = jute.AppendLong(jute.AppendInt(b, r.DigestVersion), int64(r.Digest))
	}
	return b
}

// AppendTxn appends a transaction without its type.
func AppendTxn(b []byte, t *zkfiles.Txn) []byte {
	switch t.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		b = proto.AppendACLs(jute.AppendBuffer(jute.AppendString(b, t.Path), t.Data), t.ACL)
		if t.Op == proto.OpCreate || t.Op == proto.OpCreate2 {
			b = jute.AppendBool(b, t.Ephemeral)
		}
		b = jute.AppendInt(b, t.ParentCversion)
		if t.Op == proto.OpCreateTTL {
			b = jute.AppendLong(b, t.TTLMs)
		}
	case proto.OpDelete, proto.OpDeleteContainer:
		b = jute.AppendString(b, t.Path)
	case proto.OpSetData, proto.OpReconfig:
		b = jute.AppendInt(jute.AppendBuffer(jute.AppendString(b, t.Path), t.Data), t.Version)
	case proto.OpSetACL:
		b = jute.AppendInt(proto.AppendACLs(jute.AppendString(b, t.Path), t.ACL), t.Version)
	case proto.OpCheck:
		b = jute.AppendInt(jute.AppendString(b, t.Path), t.Version)
	case proto.OpCreateSession:
		b = jute.AppendInt(b, t.TimeoutMs)
	case proto.OpCloseSession:
		if t.HasPaths {
			b = jute.AppendStrings(b, t.Paths)
		}
	case proto.OpError:
		b = jute.AppendInt(b, int32(t.Err))
	case proto.OpMulti:
		b = jute.AppendInt(b, int32(len(t.Ops)))
		for i := range t.Ops {
			b = jute.AppendInt(b, int32(t.Ops[i].Op))
			b = jute.AppendBuffer(b, AppendTxn([]byte{}, &t.Ops[i]))
		}
	}
	return b
}
