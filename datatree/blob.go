package datatree

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/proto"
)

// blob is a znode as a checkpoint stores it: the length of the key as a uvarint, the key, which is
// the path after a prefix letter, and the value, which ends with the data. The digest is the sum
// over blobs, and checkpoints write blobs. Layout: docs/reference/formats.md.
//
// A blob is immutable. Each change makes a new blob, so paths and data that were handed out stay
// valid, and a checkpoint can read old blobs while the tree changes. A blob is a single allocation
// without pointers, which is cheap for the garbage collector. Large data is a second allocation,
// which successive blobs share as long as the data stays the same: most changes of a large znode
// are changes of its children.
type blob struct {
	text  string     // everything, or everything except large data
	large *largeBlob // nil: the data is in text
}

type largeBlob struct {
	text   string
	data   string
	hash   uint64 // if hashed
	hashed bool
}

// largeBytes is the size from which data is large. Copying less costs at most two allocations.
const largeBytes = 1 << 10

// seal makes the blob of a record. It copies path, ACL, and data that is not shared with a blob.
func (s *znodeStore) seal(path string, r *record) (b blob) {
	b, s.buf = seal(s.buf, path, r)
	return b
}

// seal makes the blob of a record in a scratch buffer, which it returns.
func seal(buf []byte, path string, r *record) (blob, []byte) {
	b := binary.AppendUvarint(buf[:0], uint64(1+len(path)))
	b = append(b, znodePrefix)
	b = append(b, path...)
	b = appendHead(b, r)
	if len(r.data) >= largeBytes {
		return sealLarge(string(b), r), b
	}
	var s strings.Builder // allocates once, without zeroing
	s.Grow(len(b) + len(r.data))
	s.Write(b)
	s.WriteString(r.data)
	return blob{text: s.String()}, b
}

func sealLarge(text string, r *record) blob {
	a := &largeBlob{text: text, data: r.data}
	if !r.sealed {
		a.data = strings.Clone(r.data)
	}
	return blob{text, a}
}

// hash returns the blob's term of the digest. That of a large blob is computed by the first call.
func (b blob) hash() uint64 {
	a := b.large
	if a == nil {
		return xxhash.Sum64String(b.text)
	}
	if !a.hashed {
		var h xxhash.Digest
		h.Reset()
		_, _ = h.WriteString(a.text) // never fails
		_, _ = h.WriteString(a.data)
		a.hash, a.hashed = h.Sum64(), true
	}
	return a.hash
}

// pending reports whether the hash is not computed, and therefore not part of the digest yet.
func (b blob) pending() bool { return b.large != nil && !b.large.hashed }

// tail returns the data if it is large, else "".
func (b blob) tail() string {
	if b.large != nil {
		return b.large.data
	}
	return ""
}

func (b blob) keyAt() (start, end int) {
	n, start := uvarintAt(b.text, 0)
	return start, start + int(n)
}

// path returns the path. Like everything read from a blob, it shares the blob's memory.
func (b blob) path() string {
	start, end := b.keyAt()
	return b.text[start+1 : end]
}

func (b blob) name() string {
	path := b.path()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// key returns the key in a checkpoint, which must not be changed.
func (b blob) key() []byte {
	start, end := b.keyAt()
	return bytesOf(b.text[start:end])
}

// value returns the value in a checkpoint, which must not be changed.
func (b blob) value() []byte {
	_, end := b.keyAt()
	if b.large != nil {
		return slices.Concat(bytesOf(b.text[end:]), bytesOf(b.tail()))
	}
	return bytesOf(b.text[end:])
}

func (b blob) dataSize() int64 {
	start, i := b.keyAt()
	path := i - start - 1
	kind := b.kind()
	i++
	for left := 8; left > 0; i++ { // from czxid to aversion
		if b.text[i] < 0x80 {
			left--
		}
	}
	if kind == ephemeral || kind == ttl {
		i += 8
	}
	return int64(path + len(b.text) - aclEnd(b.text, i) + len(b.tail()))
}

// kind is record().kind.
func (b blob) kind() kind {
	_, end := b.keyAt()
	return kind(b.text[end] &^ nullData)
}

func (b blob) record() (r record) {
	b.read(&r, -1)
	return r
}

// read sets r, which must be zero, to the record. aclBytes is the length of the ACL's encoding, or
// -1 if it is unknown: then the ACL is scanned, which takes long if it has many entries.
func (b blob) read(r *record, aclBytes int) {
	s := b.text
	_, i := b.keyAt()
	r.kind, r.null = kind(s[i]&^nullData), s[i]&nullData != 0
	i++
	var v [8]uint64 // from czxid to aversion
	for k := range v {
		if c := s[i]; c < 0x80 { // nearly always
			v[k], i = uint64(c), i+1
		} else {
			v[k], i = longUvarintAt(s, i)
		}
	}
	r.czxid = proto.Zxid(v[0])
	r.mzxid = r.czxid + proto.Zxid(unzigzag(v[1]))
	r.pzxid = r.czxid + proto.Zxid(unzigzag(v[2]))
	r.ctimeMs = unzigzag(v[3])
	r.mtimeMs = r.ctimeMs + unzigzag(v[4])
	r.version, r.cversion, r.aversion = int32(unzigzag(v[5])), int32(unzigzag(v[6])), int32(unzigzag(v[7]))
	if r.kind == ephemeral || r.kind == ttl {
		r.owner = binary.BigEndian.Uint64(bytesOf(s[i : i+8]))
		i += 8
	}
	if s[i] == 0 {
		i++
	} else {
		end := i + aclBytes
		if aclBytes < 0 {
			end = aclEnd(s, i)
		}
		r.acl, i = s[i:end], end
	}
	if r.data = s[i:]; b.large != nil {
		r.data, r.sealed = b.large.data, true
	}
}

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

// uvarintAt decodes a uvarint of a blob and returns its end. Input is not checked: blobs are valid.
func uvarintAt(s string, i int) (uint64, int) {
	if s[i] < 0x80 {
		return uint64(s[i]), i + 1
	}
	return longUvarintAt(s, i)
}

// longUvarintAt decodes up to eight bytes at once. Zxids and times take five or six; a loop over
// bytes would cost mispredicted branches.
func longUvarintAt(s string, i int) (uint64, int) {
	if i+8 <= len(s) {
		v := binary.LittleEndian.Uint64(bytesOf(s[i : i+8]))
		if last := ^v & 0x8080808080808080; last != 0 { // the lowest bit of last is in the last byte
			v &= (last ^ (last - 1)) & 0x7f7f7f7f7f7f7f7f
			v = v&0x007f007f007f007f | v&0x7f007f007f007f00>>1
			v = v&0x00003fff00003fff | v&0x3fff00003fff0000>>2
			v = v&0x000000000fffffff | v&0x0fffffff00000000>>4
			return v, i + bits.TrailingZeros64(last)/8 + 1
		}
	}
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

// unzigzag converts a uvarint to a varint.
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// bytesOf returns the bytes of s, which must not be changed. It is not nil, even if s is empty.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// textOf returns b as a string that is valid until b is changed.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
