package proto

import "github.com/gozkd/gozkd/proto/jute"

// The special xids.
const (
	XidEvent      int32 = -1
	XidPing       int32 = -2
	XidAuth       int32 = -4
	XidSetWatches int32 = -8
)

// RequestHeaderBytes and ReplyHeaderBytes are encoded sizes.
const (
	RequestHeaderBytes = 8
	ReplyHeaderBytes   = 16
)

// RequestHeader begins every request except the first.
type RequestHeader struct {
	Xid int32
	Op  OpCode
}

// Append appends the encoding.
func (h *RequestHeader) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendInt(b, h.Xid), int32(h.Op))
}

// Decode reads the record.
func (h *RequestHeader) Decode(d *jute.Decoder) { h.Xid, h.Op = d.Int(), OpCode(d.Int()) }

// ReplyHeader begins every reply and event. A response record follows only if Err is OK and the
// operation has a response.
type ReplyHeader struct {
	Xid  int32
	Zxid Zxid
	Err  ErrCode
}

// Append appends the encoding.
func (h *ReplyHeader) Append(b []byte) []byte {
	b = jute.AppendInt(b, h.Xid)
	b = jute.AppendLong(b, int64(h.Zxid))
	return jute.AppendInt(b, int32(h.Err))
}

// Decode reads the record.
func (h *ReplyHeader) Decode(d *jute.Decoder) {
	h.Xid, h.Zxid, h.Err = d.Int(), Zxid(d.Long()), ErrCode(d.Int())
}
