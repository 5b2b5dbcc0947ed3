package datatree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

// A reader returns what is there up to the first error, and then zero values and that error.
func TestReader(t *testing.T) {
	uvarint := func(v uint64) []byte { return binary.AppendUvarint(nil, v) }
	varint := func(v int64) []byte { return binary.AppendVarint(nil, v) }
	for _, tc := range []struct {
		name string
		in   []byte
		read func(d *reader) any
		want string
	}{
		{"byte", []byte{7}, func(d *reader) any { return d.byte() }, "7, <nil>"},
		{"byte", nil, func(d *reader) any { return d.byte() }, "0, truncated"},
		{"fixed64", []byte{0, 0, 0, 0, 0, 0, 1, 2}, func(d *reader) any { return d.fixed64() }, "258, <nil>"},
		{"fixed64", []byte{0, 0, 0, 0, 0, 0, 1}, func(d *reader) any { return d.fixed64() }, "0, truncated"},
		{"uvarint", uvarint(math.MaxUint64), func(d *reader) any { return d.uvarint() }, "18446744073709551615, <nil>"},
		{"uvarint", []byte{0x85}, func(d *reader) any { return d.uvarint() }, "0, truncated"},
		{"uvarint", bytes.Repeat([]byte{0xff}, 11), func(d *reader) any { return d.uvarint() }, "0, truncated"},
		{"varint", bytes.Repeat([]byte{0xff}, 11), func(d *reader) any { return d.varint() }, "0, truncated"},
		{"varint", varint(math.MinInt64), func(d *reader) any { return d.varint() }, "-9223372036854775808, <nil>"},
		{"varint", []byte{0x85}, func(d *reader) any { return d.varint() }, "0, truncated"},
		{"uint32", uvarint(math.MaxUint32), func(d *reader) any { return d.uint32() }, "4294967295, <nil>"},
		{"uint32", uvarint(math.MaxUint32 + 2), func(d *reader) any { return d.uint32() }, "0, 4294967297 does not fit 32 bits"},
		{"int32", varint(math.MaxInt32), func(d *reader) any { return d.int32() }, "2147483647, <nil>"},
		{"int32", varint(math.MaxInt32 + 1), func(d *reader) any { return d.int32() }, "0, 2147483648 does not fit 32 bits"},
		{"int32", varint(math.MinInt32), func(d *reader) any { return d.int32() }, "-2147483648, <nil>"},
		{"int32", varint(math.MinInt32 - 1), func(d *reader) any { return d.int32() }, "0, -2147483649 does not fit 32 bits"},
		{"count", []byte{2, 0, 0, 0, 0}, func(d *reader) any { return d.count(2) }, "2, <nil>"},
		{"count", []byte{3, 0, 0, 0, 0, 0}, func(d *reader) any { return d.count(2) }, "0, 3 elements, 5 bytes are left"},
		{"text", []byte{2, 'a', 'b'}, func(d *reader) any { return d.text() }, "ab, <nil>"},
		{"an error, then more", []byte{0x85, 0, 0}, func(d *reader) any {
			d.fail(fmt.Errorf("first"))
			return []any{d.byte(), d.fixed64(), d.uvarint(), d.varint(), d.uint32(), d.int32(), d.count(1), d.text()}
		}, "[0 0 0 0 0 0 0 ], first"},
	} {
		d := reader{b: tc.in}
		v := tc.read(&d)
		if got := fmt.Sprintf("%v, %v", v, d.err); got != tc.want {
			t.Errorf("%s of %x: %s, want %s", tc.name, tc.in, got, tc.want)
		}
		if err := d.end(); len(d.b) == 0 && err != d.err { //nolint:errorlint // the same error
			t.Errorf("%s of %x: in the end %v", tc.name, tc.in, err)
		}
	}
	d := reader{b: []byte{1}}
	if err := d.end(); err == nil || err.Error() != "1 bytes too many" {
		t.Errorf("a byte that nobody reads: %v", err)
	}
}
