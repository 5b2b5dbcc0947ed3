package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"
)

// ErrMalformed is wrapped by every decoding error of this package.
var ErrMalformed = errors.New("jute: malformed")

// A Decoder reads primitives from a byte slice that must not change meanwhile. The zero value has
// no input; [Decoder.Reset] sets it. Not safe for concurrent use.
//
// The first error is kept (J4), so a record can be decoded without a check after each field.
type Decoder struct {
	buf   []byte
	off   int
	err   error
	alias bool
}

// NewDecoder returns a decoder over b.
func NewDecoder(b []byte) Decoder { return Decoder{buf: b} }

// Reset sets the input to b, clears the error and switches aliasing off.
func (d *Decoder) Reset(b []byte) { *d = Decoder{buf: b} }

// AliasStrings makes all methods that return strings return them without allocation, sharing the
// input's memory. The input must stay unchanged as long as any of these strings is in use.
func (d *Decoder) AliasStrings() { d.alias = true }

// Err returns the first error, or nil.
func (d *Decoder) Err() error { return d.err }

// Remaining returns the number of unread bytes.
func (d *Decoder) Remaining() int { return len(d.buf) - d.off }

// Rest returns the unread bytes, which share the input's memory.
func (d *Decoder) Rest() []byte { return d.buf[d.off:] }

// Offset returns the position of the next byte in the input.
func (d *Decoder) Offset() int { return d.off }

// take returns the next n bytes, or nil and an error.
func (d *Decoder) take(n int, what string) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.buf)-d.off {
		d.fail("%s needs %d bytes, %d are left", what, n, len(d.buf)-d.off)
		return nil
	}
	b := d.buf[d.off : d.off+n : d.off+n]
	d.off += n
	return b
}

func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: at byte %d: %s", ErrMalformed, d.off, fmt.Sprintf(format, args...))
	}
}

// Bool reads one byte; every value except 0 is true.
func (d *Decoder) Bool() bool {
	b := d.take(1, "bool")
	return b != nil && b[0] != 0
}

// Int reads a 4-byte int.
func (d *Decoder) Int() int32 {
	b := d.take(4, "int")
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Long reads an 8-byte long.
func (d *Decoder) Long() int64 {
	b := d.take(8, "long")
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// Buffer reads a buffer: nil for null, else a non-nil slice. The bytes share the input's memory.
func (d *Decoder) Buffer() []byte {
	b, null := d.lengthPrefixed("buffer")
	if null {
		return nil
	}
	return b
}

// String reads a string; null is read as "".
func (d *Decoder) String() string {
	b, _ := d.lengthPrefixed("string")
	return d.text(b)
}

// RequiredString reads a string that must not be null: null is an error.
func (d *Decoder) RequiredString() string {
	b, null := d.lengthPrefixed("string")
	if null {
		d.fail("null where a string is required")
	}
	return d.text(b)
}

// NullString reads a string that may be null: nil for null.
func (d *Decoder) NullString() *string {
	b, null := d.lengthPrefixed("string")
	if null || d.err != nil {
		return nil
	}
	s := d.text(b)
	return &s
}

// StringOrNull reads a string and reports whether it was null, in which case it is "".
func (d *Decoder) StringOrNull() (s string, null bool) {
	b, null := d.lengthPrefixed("string")
	return d.text(b), null
}

// Strings reads a vector of strings: nil for null. Null elements are read as "".
func (d *Decoder) Strings() []string {
	n := d.Count(4)
	if n < 0 {
		return nil
	}
	v := make([]string, 0, n)
	for range n {
		v = append(v, d.String())
	}
	if d.err != nil {
		return nil
	}
	return v
}

// Count reads the count of a vector whose elements have at least minBytes each: -1 for null,
// otherwise the number of elements. A count that the remaining bytes cannot hold is an error, so
// the caller may allocate that many. Like ZooKeeper, it reads negative counts other than -1 as 0.
func (d *Decoder) Count(minBytes int) int {
	n := int(d.Int())
	switch {
	case n == -1 && d.err == nil:
		return -1
	case n <= 0:
		return 0
	case n > d.Remaining()/max(minBytes, 1):
		d.fail("vector of %d elements, %d bytes are left", n, d.Remaining())
		return 0
	}
	return n
}

func (d *Decoder) lengthPrefixed(what string) (b []byte, null bool) {
	n := int(d.Int())
	if d.err != nil {
		return nil, false
	}
	if n == -1 {
		return nil, true
	}
	if n < 0 {
		d.fail("%s of length %d", what, n)
		return nil, false
	}
	return d.take(n, what), false
}

// text converts b to a string. As in Java, malformed UTF-8 becomes U+FFFD. No znode has such a
// name, but events and sync return it.
func (d *Decoder) text(b []byte) string {
	if d.alias && len(b) > 0 && utf8.Valid(b) {
		return unsafe.String(&b[0], len(b))
	}
	return Text(b)
}

// Text converts bytes to a string as Java does: malformed UTF-8 becomes U+FFFD.
func Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return replaceMalformed(b)
}

// replaceMalformed replaces each malformed sequence by U+FFFD. As in Java's decoder, the longest
// prefix of a valid sequence counts as a single malformed sequence, and so does a surrogate encoded
// in three bytes.
func replaceMalformed(b []byte) string {
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		out = utf8.AppendRune(out, utf8.RuneError)
		b = b[malformedLen(b):]
	}
	return string(out)
}

// malformedLen returns the length of the malformed sequence at the start of b.
func malformedLen(b []byte) int {
	lead, low, high := b[0], byte(0x80), byte(0xbf)
	need := 0
	switch {
	case lead >= 0xc2 && lead <= 0xdf:
		need = 1
	case lead >= 0xe0 && lead <= 0xef:
		need = 2
		if lead == 0xe0 {
			low = 0xa0
		}
	case lead >= 0xf0 && lead <= 0xf4:
		need = 3
		if lead == 0xf0 {
			low = 0x90
		} else if lead == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for ; n <= need && n < len(b) && b[n] >= low && b[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}
