package generate

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Records that package proto cannot express: null where a string is required.

// text returns a string that is not null.
func text(s string) *string { return &s }

type acl struct {
	perms      int32
	scheme, id *string
}

func appendACLs(b []byte, list []acl) []byte {
	if list == nil {
		return jute.AppendInt(b, -1)
	}
	b = jute.AppendInt(b, int32(len(list)))
	for _, a := range list {
		b = jute.AppendInt(b, a.perms)
		b = jute.AppendNullString(b, a.scheme)
		b = jute.AppendNullString(b, a.id)
	}
	return b
}

type create struct {
	path *string
	data []byte
	acl  []acl
	mode int32
	ttl  int64
}

func (c create) body(op proto.OpCode) []byte {
	b := jute.AppendNullString(nil, c.path)
	b = jute.AppendBuffer(b, c.data)
	b = appendACLs(b, c.acl)
	b = jute.AppendInt(b, c.mode)
	if op == proto.OpCreateTTL {
		b = jute.AppendLong(b, c.ttl)
	}
	return b
}

func pathInt(path *string, n int32) []byte {
	return jute.AppendInt(jute.AppendNullString(nil, path), n)
}

func pathBool(path *string, v bool) []byte {
	return jute.AppendBool(jute.AppendNullString(nil, path), v)
}

func setData(path *string, data []byte, version int32) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendNullString(nil, path), data), version)
}

func setACL(path *string, list []acl, version int32) []byte {
	return jute.AppendInt(appendACLs(jute.AppendNullString(nil, path), list), version)
}

func auth(scheme *string, data []byte) []byte {
	return jute.AppendBuffer(jute.AppendNullString(jute.AppendInt(nil, 0), scheme), data)
}

func multiHeader(b []byte, op proto.OpCode, done bool) []byte {
	return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, int32(op)), done), -1)
}
