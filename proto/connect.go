package proto

import "github.com/gozkd/gozkd/proto/jute"

// PasswdBytes is the length of a session password; the C client relies on it.
const PasswdBytes = 16

// ConnectRequest is the first frame of a connection. It has no request header.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    Zxid
	TimeoutMs       int32
	SessionID       SessionID // 0: a new session
	Passwd          []byte
	ReadOnly        bool
	// The trailing byte was present; clients up to 3.3 and go-zookeeper do not send it.
	HasReadOnly bool
}

// Append appends the encoding, with the trailing byte if HasReadOnly.
func (r *ConnectRequest) Append(b []byte) []byte {
	b = jute.AppendLong(jute.AppendInt(b, r.ProtocolVersion), int64(r.LastZxidSeen))
	return appendSession(b, r.TimeoutMs, r.SessionID, r.Passwd, r.HasReadOnly, r.ReadOnly)
}

// appendSession appends the fields that both records end with.
func appendSession(b []byte, timeoutMs int32, id SessionID, passwd []byte, hasReadOnly, readOnly bool) []byte {
	b = jute.AppendLong(jute.AppendInt(b, timeoutMs), int64(id))
	b = jute.AppendBuffer(b, passwd)
	if hasReadOnly {
		b = jute.AppendBool(b, readOnly)
	}
	return b
}

// Decode reads the record.
func (r *ConnectRequest) Decode(d *jute.Decoder) {
	r.ProtocolVersion = d.Int()
	r.LastZxidSeen = Zxid(d.Long())
	r.TimeoutMs = d.Int()
	r.SessionID = SessionID(d.Long())
	r.Passwd = d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Remaining() > 0
	r.ReadOnly = r.HasReadOnly && d.Bool()
}

// ConnectResponse is the reply to a ConnectRequest. It has no reply header.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMs       int32 // 0 or less: the session is expired or refused
	SessionID       SessionID
	Passwd          []byte
	ReadOnly        bool
	HasReadOnly     bool // append the trailing byte, for a client that sent it
}

// Append appends the encoding, with the trailing byte if HasReadOnly.
func (r *ConnectResponse) Append(b []byte) []byte {
	b = jute.AppendInt(b, r.ProtocolVersion)
	return appendSession(b, r.TimeoutMs, r.SessionID, r.Passwd, r.HasReadOnly, r.ReadOnly)
}

// Decode reads the record.
func (r *ConnectResponse) Decode(d *jute.Decoder) {
	r.ProtocolVersion = d.Int()
	r.TimeoutMs = d.Int()
	r.SessionID = SessionID(d.Long())
	r.Passwd = d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Remaining() > 0
	r.ReadOnly = r.HasReadOnly && d.Bool()
}
