package proto

import "github.com/gozkd/gozkd/proto/jute"

// CreateResponse is the response of create; with the Stat, of create2, createContainer, createTTL.
type CreateResponse struct {
	Path string // with the sequence suffix
	Stat Stat
}

// Append appends the response to op.
func (r *CreateResponse) Append(b []byte, op OpCode) []byte {
	b = jute.AppendString(b, r.Path)
	if op != OpCreate {
		b = r.Stat.Append(b)
	}
	return b
}

// Decode reads the response to op.
func (r *CreateResponse) Decode(d *jute.Decoder, op OpCode) {
	r.Path = d.String()
	if op != OpCreate {
		r.Stat.Decode(d)
	}
}

// DataResponse is the response of getData and reconfig.
type DataResponse struct {
	Data []byte
	Stat Stat
}

// Append appends the encoding.
func (r *DataResponse) Append(b []byte) []byte { return r.Stat.Append(jute.AppendBuffer(b, r.Data)) }

// Decode reads the record.
func (r *DataResponse) Decode(d *jute.Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// ChildrenResponse is the response of getChildren and, with the Stat, of getChildren2.
type ChildrenResponse struct {
	Children []string // names without the parent's path, in any order
	Stat     Stat
}

// Append appends the response to op.
func (r *ChildrenResponse) Append(b []byte, op OpCode) []byte {
	b = jute.AppendStrings(b, r.Children)
	if op == OpGetChildren2 {
		b = r.Stat.Append(b)
	}
	return b
}

// Decode reads the response to op.
func (r *ChildrenResponse) Decode(d *jute.Decoder, op OpCode) {
	r.Children = d.Strings()
	if op == OpGetChildren2 {
		r.Stat.Decode(d)
	}
}

// ACLResponse is the response of getACL.
type ACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Append appends the encoding.
func (r *ACLResponse) Append(b []byte) []byte { return r.Stat.Append(AppendACLs(b, r.ACL)) }

// Decode reads the record.
func (r *ACLResponse) Decode(d *jute.Decoder) {
	r.ACL = DecodeACLs(d)
	r.Stat.Decode(d)
}

// StringsResponse is the response of getEphemerals.
type StringsResponse struct{ Strings []string }

// Append appends the encoding.
func (r *StringsResponse) Append(b []byte) []byte { return jute.AppendStrings(b, r.Strings) }

// Decode reads the record.
func (r *StringsResponse) Decode(d *jute.Decoder) { r.Strings = d.Strings() }

// IntResponse is the response of getAllChildrenNumber (the number) and of addWatch (always 0).
type IntResponse struct{ Value int32 }

// Append appends the encoding.
func (r *IntResponse) Append(b []byte) []byte { return jute.AppendInt(b, r.Value) }

// Decode reads the record.
func (r *IntResponse) Decode(d *jute.Decoder) { r.Value = d.Int() }

// WhoAmIResponse is the response of whoAmI. ID.ID is the user: the part before ':' for digest.
type WhoAmIResponse struct{ IDs []ID }

// Append appends the encoding.
func (r *WhoAmIResponse) Append(b []byte) []byte {
	b = jute.AppendInt(b, int32(len(r.IDs)))
	for i := range r.IDs {
		b = r.IDs[i].Append(b)
	}
	return b
}

// Decode reads the record.
func (r *WhoAmIResponse) Decode(d *jute.Decoder) {
	n := max(d.Count(8), 0)
	r.IDs = make([]ID, n)
	for i := range r.IDs {
		r.IDs[i].Decode(d)
	}
}
