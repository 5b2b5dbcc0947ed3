package proto

import "github.com/gozkd/gozkd/proto/jute"

// CreateRequest is the body of create, create2, createContainer and, followed by a TTL, createTTL.
type CreateRequest struct {
	Path string
	// NullPath means that the path is null; Path is "" then. ZooKeeper checks mode and TTL before
	// it refuses such a path.
	NullPath bool
	Data     []byte
	ACL      []ACL
	Mode     CreateMode
	TTL      int64 // milliseconds; encoded for createTTL only
}

// Append appends the body of op, with the TTL for createTTL.
func (r *CreateRequest) Append(b []byte, op OpCode) []byte {
	if r.NullPath {
		b = jute.AppendNullString(b, nil)
	} else {
		b = jute.AppendString(b, r.Path)
	}
	b = jute.AppendBuffer(b, r.Data)
	b = AppendACLs(b, r.ACL)
	b = jute.AppendInt(b, int32(r.Mode))
	if op == OpCreateTTL {
		b = jute.AppendLong(b, r.TTL)
	}
	return b
}

// Decode reads the body of op. TTL is -1 if it is not encoded.
func (r *CreateRequest) Decode(d *jute.Decoder, op OpCode) {
	r.Path, r.NullPath = d.StringOrNull()
	r.Data = d.Buffer()
	r.ACL = DecodeACLs(d)
	r.Mode = CreateMode(d.Int())
	r.TTL = -1
	if op == OpCreateTTL {
		r.TTL = d.Long()
	}
}

// PathVersionRequest is the body of delete and check.
type PathVersionRequest struct {
	Path    string
	Version int32 // -1: any
}

// Append appends the encoding.
func (r *PathVersionRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), r.Version)
}

// Decode reads the record. A null path is an error.
func (r *PathVersionRequest) Decode(d *jute.Decoder) { r.Path, r.Version = d.RequiredString(), d.Int() }

// PathWatchRequest is the body of exists, getData, getChildren and getChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Append appends the encoding.
func (r *PathWatchRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendString(b, r.Path), r.Watch)
}

// Decode reads the record. A null path is an error.
func (r *PathWatchRequest) Decode(d *jute.Decoder) { r.Path, r.Watch = d.RequiredString(), d.Bool() }

// PathRequest is the body of getACL, getAllChildrenNumber, getEphemerals, deleteContainer and sync,
// and the response of sync and create. nil is null: legal for sync and getEphemerals.
type PathRequest struct{ Path *string }

// Append appends the encoding.
func (r *PathRequest) Append(b []byte) []byte { return jute.AppendNullString(b, r.Path) }

// Decode reads the record.
func (r *PathRequest) Decode(d *jute.Decoder) { r.Path = d.NullString() }

// SetDataRequest is the body of setData. A null path is read as "", which is not a valid path.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Append appends the encoding.
func (r *SetDataRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendString(b, r.Path), r.Data), r.Version)
}

// Decode reads the record.
func (r *SetDataRequest) Decode(d *jute.Decoder) {
	r.Path, r.Data, r.Version = d.String(), d.Buffer(), d.Int()
}

// SetACLRequest is the body of setACL. A null path is read as "", which is not a valid path.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32 // of the ACL, Stat.Aversion
}

// Append appends the encoding.
func (r *SetACLRequest) Append(b []byte) []byte {
	return jute.AppendInt(AppendACLs(jute.AppendString(b, r.Path), r.ACL), r.Version)
}

// Decode reads the record.
func (r *SetACLRequest) Decode(d *jute.Decoder) {
	r.Path, r.ACL, r.Version = d.String(), DecodeACLs(d), d.Int()
}

// ReconfigRequest is the body of reconfig. nil is absent.
type ReconfigRequest struct {
	Joining, Leaving, NewMembers *string
	ConfigID                     int64 // -1: unconditional
}

// Append appends the encoding.
func (r *ReconfigRequest) Append(b []byte) []byte {
	b = jute.AppendNullString(b, r.Joining)
	b = jute.AppendNullString(b, r.Leaving)
	b = jute.AppendNullString(b, r.NewMembers)
	return jute.AppendLong(b, r.ConfigID)
}

// Decode reads the record.
func (r *ReconfigRequest) Decode(d *jute.Decoder) {
	r.Joining, r.Leaving, r.NewMembers, r.ConfigID = d.NullString(), d.NullString(), d.NullString(), d.Long()
}

// AuthRequest is the body of auth. Its type field is written as 0 and ignored.
type AuthRequest struct {
	Scheme string
	Auth   []byte
}

// Append appends the encoding.
func (r *AuthRequest) Append(b []byte) []byte {
	return jute.AppendBuffer(jute.AppendString(jute.AppendInt(b, 0), r.Scheme), r.Auth)
}

// Decode reads the record.
func (r *AuthRequest) Decode(d *jute.Decoder) {
	d.Int()
	r.Scheme, r.Auth = d.String(), d.Buffer()
}

// TokenRecord is the body and the response of sasl.
type TokenRecord struct{ Token []byte }

// Append appends the encoding.
func (r *TokenRecord) Append(b []byte) []byte { return jute.AppendBuffer(b, r.Token) }

// Decode reads the record.
func (r *TokenRecord) Decode(d *jute.Decoder) { r.Token = d.Buffer() }
