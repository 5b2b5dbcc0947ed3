package datatree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errTruncated = errors.New("truncated")

// reader decodes the records of this package. It keeps the first error; then reads return zero.
type reader struct {
	b   []byte
	err error
}

func (d *reader) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *reader) take(n int) []byte {
	if n > len(d.b) {
		d.fail(errTruncated)
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *reader) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *reader) fixed64() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errTruncated)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *reader) uint32() uint32 {
	v := d.uvarint()
	if v > math.MaxUint32 {
		d.fail(fmt.Errorf("%d does not fit 32 bits", v))
		return 0
	}
	return uint32(v)
}

func (d *reader) int32() int32 {
	v := d.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.fail(fmt.Errorf("%d does not fit 32 bits", v))
		return 0
	}
	return int32(v)
}

// count decodes a number of elements of at least minBytes each. It fails if the input is too short
// for them.
func (d *reader) count(minBytes int) int {
	v := d.uvarint()
	if v > uint64(len(d.b)/minBytes) {
		d.fail(fmt.Errorf("%d elements, %d bytes are left", v, len(d.b)))
		return 0
	}
	return int(v)
}

// bytes decodes a length and that many bytes, which share the input.
func (d *reader) bytes() []byte { return d.take(d.count(1)) }

// text decodes a length and that many bytes, which it copies.
func (d *reader) text() string { return string(d.bytes()) }

// end returns the first error, or an error if input is left.
func (d *reader) end() error {
	if len(d.b) > 0 { // not after an error
		return fmt.Errorf("%d bytes too many", len(d.b))
	}
	return d.err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
