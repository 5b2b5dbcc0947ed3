package proto

import (
	"github.com/gozkd/gozkd/proto/jute"
)

// StatBytes is the size of an encoded Stat.
const StatBytes = 68

// Stat is the metadata of a znode that clients see.
type Stat struct {
	Czxid, Mzxid                Zxid  // of the create; of the last create or setData
	CtimeMs, MtimeMs            int64 // Unix milliseconds of the same
	Version, Cversion, Aversion int32 // of data, children, ACL
	EphemeralOwner              SessionID
	DataLength, NumChildren     int32
	Pzxid                       Zxid // of the last create or delete of a child
}

// Append appends the encoding, StatBytes long.
func (s *Stat) Append(b []byte) []byte {
	b = jute.AppendLong(b, int64(s.Czxid))
	b = jute.AppendLong(b, int64(s.Mzxid))
	b = jute.AppendLong(b, s.CtimeMs)
	b = jute.AppendLong(b, s.MtimeMs)
	b = jute.AppendInt(b, s.Version)
	b = jute.AppendInt(b, s.Cversion)
	b = jute.AppendInt(b, s.Aversion)
	b = jute.AppendLong(b, int64(s.EphemeralOwner))
	b = jute.AppendInt(b, s.DataLength)
	b = jute.AppendInt(b, s.NumChildren)
	return jute.AppendLong(b, int64(s.Pzxid))
}

// Decode reads the record.
func (s *Stat) Decode(d *jute.Decoder) {
	s.Czxid = Zxid(d.Long())
	s.Mzxid = Zxid(d.Long())
	s.CtimeMs = d.Long()
	s.MtimeMs = d.Long()
	s.Version = d.Int()
	s.Cversion = d.Int()
	s.Aversion = d.Int()
	s.EphemeralOwner = SessionID(d.Long())
	s.DataLength = d.Int()
	s.NumChildren = d.Int()
	s.Pzxid = Zxid(d.Long())
}
