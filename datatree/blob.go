package datatree

import (
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/proto"
)

// blob is a znode as it stands in a checkpoint, in one piece: the length of the key as a uvarint, the key, which is the path with a letter in
// front, and the value, which ends with the data. So it is what the digest is a sum of, and what a checkpoint writes. Layout: docs/formats.md.
//
// It is immutable: a change makes a new one, so data and paths that were handed out stay as they are, and a checkpoint reads old
// ones while the tree moves on. It has no pointers, so to the garbage collector it is one thing to mark and nothing to look into.
type blob string

// seal makes the blob of a record. It copies path, ACL and data.
func (t *Tree) seal(path string, r *record) blob {
	b := binary.AppendUvarint(t.buf[:0], uint64(1+len(path)))
	b = append(b, znodePrefix)
	b = append(b, path...)
	b = appendHead(b, r)
	t.buf = b
	var s strings.Builder // allocates once, without zeroing first
	s.Grow(len(b) + len(r.data))
	s.Write(b)
	s.WriteString(r.data)
	return blob(s.String())
}

// hash returns the blob's part of the digest.
func (b blob) hash() uint64 { return xxhash.Sum64String(string(b)) }

// keyAt returns where the key begins and ends.
func (b blob) keyAt() (start, end int) {
	n, start := uvarintAt(string(b), 0)
	return start, start + int(n)
}

// path returns the path, which shares the blob's memory, as all that is read from it.
func (b blob) path() string {
	start, end := b.keyAt()
	return string(b[start+1 : end])
}

// name returns the last part of the path.
func (b blob) name() string {
	path := b.path()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// key returns the key in a checkpoint, not to be changed.
func (b blob) key() []byte {
	start, end := b.keyAt()
	return bytesOf(string(b[start:end]))
}

// value returns the value in a checkpoint, not to be changed.
func (b blob) value() []byte {
	_, end := b.keyAt()
	return bytesOf(string(b[end:]))
}

// dataSize returns the bytes of path and data.
func (b blob) dataSize() int64 {
	start, i := b.keyAt()
	path := i - start - 1
	kind := b.kind()
	i++
	for left := 8; left > 0; i++ { // from czxid to aversion
		if b[i] < 0x80 {
			left--
		}
	}
	if kind == ephemeral || kind == ttl {
		i += 8
	}
	return int64(path + len(b) - aclEnd(string(b), i))
}

// kind is record().kind.
func (b blob) kind() kind {
	_, end := b.keyAt()
	return kind(b[end] &^ nullData)
}

// record takes the value apart.
func (b blob) record() record {
	s := string(b)
	_, i := b.keyAt()
	r := record{kind: kind(s[i] &^ nullData), null: s[i]&nullData != 0}
	u, i := uvarintAt(s, i+1)
	r.czxid = proto.Zxid(u)
	v, i := varintAt(s, i)
	r.mzxid = r.czxid + proto.Zxid(v)
	v, i = varintAt(s, i)
	r.pzxid = r.czxid + proto.Zxid(v)
	r.ctimeMs, i = varintAt(s, i)
	v, i = varintAt(s, i)
	r.mtimeMs = r.ctimeMs + v
	v, i = varintAt(s, i)
	r.version = int32(v)
	v, i = varintAt(s, i)
	r.cversion = int32(v)
	v, i = varintAt(s, i)
	r.aversion = int32(v)
	if r.kind == ephemeral || r.kind == ttl {
		r.owner = binary.BigEndian.Uint64(bytesOf(s[i : i+8]))
		i += 8
	}
	if s[i] == 0 {
		i++
	} else {
		end := aclEnd(s, i)
		r.acl, i = s[i:end], end
	}
	r.data = s[i:]
	return r
}

// aclEnd returns where the ACL that begins at i ends.
func aclEnd(s string, i int) int {
	n, i := uvarintAt(s, i)
	for range n {
		_, i = uvarintAt(s, i) // permissions
		for range 2 {          // scheme and id
			var length uint64
			length, i = uvarintAt(s, i)
			i += int(length)
		}
	}
	return i
}

// uvarintAt reads a uvarint of a blob, which is known to be there, and returns where it ends.
func uvarintAt(s string, i int) (uint64, int) {
	if c := s[i]; c < 0x80 {
		return uint64(c), i + 1
	}
	return longUvarintAt(s, i)
}

func longUvarintAt(s string, i int) (uint64, int) {
	var v uint64
	for shift := 0; ; shift += 7 {
		c := s[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i
		}
	}
}

func varintAt(s string, i int) (int64, int) {
	u, i := uvarintAt(s, i)
	return int64(u>>1) ^ -int64(u&1), i
}

// bytesOf returns the bytes of s, which must not be changed: not nil if empty.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// textOf returns b as a string, which holds for as long as b is not changed.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
