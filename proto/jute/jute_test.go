package jute_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gozkd/gozkd/proto/jute"
	"pgregory.net/rapid"
)

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, l, bo := rapid.Int32().Draw(t, "int"), rapid.Int64().Draw(t, "long"), rapid.Bool().Draw(t, "bool")
		buf := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOf(rapid.Byte())).Draw(t, "buffer")
		str := rapid.String().Draw(t, "string")
		strs := rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOf(rapid.String())).Draw(t, "strings")
		null := rapid.OneOf(rapid.Just[*string](nil), rapid.Ptr(rapid.String(), false)).Draw(t, "null string")

		b := jute.AppendInt(nil, i)
		b = jute.AppendLong(b, l)
		b = jute.AppendBool(b, bo)
		b = jute.AppendBuffer(b, buf)
		b = jute.AppendString(b, str)
		b = jute.AppendStrings(b, strs)
		b = jute.AppendNullString(b, null)

		for _, alias := range []bool{false, true} {
			d := jute.NewDecoder(b)
			if alias {
				d.AliasStrings()
			}
			if got := d.Int(); got != i {
				t.Fatalf("int %d, want %d", got, i)
			}
			if got := d.Long(); got != l {
				t.Fatalf("long %d, want %d", got, l)
			}
			if got := d.Bool(); got != bo {
				t.Fatalf("bool %v, want %v", got, bo)
			}
			if got := d.Buffer(); !bytes.Equal(got, buf) || (got == nil) != (buf == nil) {
				t.Fatalf("buffer %v, want %v", got, buf)
			}
			if got := d.String(); got != str {
				t.Fatalf("string %q, want %q", got, str)
			}
			got := d.Strings()
			if (got == nil) != (strs == nil) || strings.Join(got, "\x00") != strings.Join(strs, "\x00") || len(got) != len(strs) {
				t.Fatalf("strings %q, want %q", got, strs)
			}
			switch got := d.NullString(); {
			case (got == nil) != (null == nil):
				t.Fatalf("null string %v, want %v", got, null)
			case got != nil && *got != *null:
				t.Fatalf("null string %q, want %q", *got, *null)
			}
			if d.Err() != nil || d.Remaining() != 0 {
				t.Fatalf("err %v, %d bytes left", d.Err(), d.Remaining())
			}
			// Every proper prefix is malformed, and the decoder reports it.
			cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
			d = jute.NewDecoder(b[:cut])
			d.Int()
			d.Long()
			d.Bool()
			d.Buffer()
			_ = d.String()
			d.Strings()
			d.NullString()
			if !errors.Is(d.Err(), jute.ErrMalformed) {
				t.Fatalf("cut at %d of %d: err %v", cut, len(b), d.Err())
			}
		}
	})
}

// The bytes are those that ZooKeeper's BinaryOutputArchive writes, not made by our encoder.
func TestLayout(t *testing.T) {
	b := jute.AppendInt(nil, -2)
	b = jute.AppendLong(b, 0x0102030405060708)
	b = jute.AppendBool(b, true)
	b = jute.AppendBuffer(b, nil)
	b = jute.AppendBuffer(b, []byte{})
	b = jute.AppendString(b, "/a")
	b = jute.AppendStrings(b, nil)
	want := "\xff\xff\xff\xfe" + "\x01\x02\x03\x04\x05\x06\x07\x08" + "\x01" + "\xff\xff\xff\xff" +
		"\x00\x00\x00\x00" + "\x00\x00\x00\x02/a" + "\xff\xff\xff\xff"
	if string(b) != want {
		t.Fatalf("got  %q\nwant %q", b, want)
	}
}

func TestLengthsAreLies(t *testing.T) {
	for name, read := range map[string]func(*jute.Decoder){
		"buffer":          func(d *jute.Decoder) { d.Buffer() },
		"string":          func(d *jute.Decoder) { _ = d.String() },
		"required string": func(d *jute.Decoder) { d.RequiredString() },
		"null string":     func(d *jute.Decoder) { d.NullString() },
		"strings":         func(d *jute.Decoder) { d.Strings() },
	} {
		for _, n := range []int32{0x7fffffff, 0x10000000, 5} {
			d := jute.NewDecoder(append(jute.AppendInt(nil, n), "abcd"...))
			// If the decoder believed any of these lengths, it would allocate more than allowed
			// here; the input and the error are small.
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			read(&d)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; n > 5 && got > 1<<20 {
				t.Errorf("%s of length %d: %d bytes allocated", name, n, got)
			}
			if !errors.Is(d.Err(), jute.ErrMalformed) {
				t.Errorf("%s of length %d: err %v", name, n, d.Err())
			}
		}
		d := jute.NewDecoder(jute.AppendInt(nil, -2)) // -1 is null
		if read(&d); name != "strings" && !errors.Is(d.Err(), jute.ErrMalformed) {
			t.Errorf("%s of length -2: err %v", name, d.Err())
		}
	}
	d := jute.NewDecoder(jute.AppendInt(nil, -5))
	if n := d.Count(1); n != 0 || d.Err() != nil {
		t.Errorf("count -5 reads as %d, %v; ZooKeeper reads an empty vector", n, d.Err())
	}
	d = jute.NewDecoder(jute.AppendInt(nil, -1))
	if d.RequiredString(); d.Err() == nil {
		t.Error("a required string that is null is no error")
	}
}

func TestMalformedUTF8(t *testing.T) {
	d := jute.NewDecoder(jute.AppendString(nil, "/a\xff\xc0b"))
	if got := d.String(); got != "/a��b" {
		t.Errorf("got %q", got)
	}
}

// Java's decoder replaces each maximal prefix of an encoding by U+FFFD. The results come from new
// String(bytes, UTF_8).
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä€😀":            "plain ä€😀",
		"\x80\xFF":             "\uFFFD\uFFFD",
		"\xE2\x82 ":            "\uFFFD ",
		"\xE2\x28\xA1":         "\uFFFD(\uFFFD",
		"\xF0\x9F\x98":         "\uFFFD",
		"\xF0\x9F\x98\xF0":     "\uFFFD\uFFFD",
		"\xC0\xAF":             "\uFFFD\uFFFD",
		"\xED\xA0\x80":         "\uFFFD",
		"\xF4\x90\x80\x80":     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xC3":                 "\uFFFD",
		"a\uFFFDb":             "a\uFFFDb",
		"\xE0\x80\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xF0\x9F\x98\x80\xC3": "😀\uFFFD",
	} {
		if got := jute.Text([]byte(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(jute.AppendStrings(jute.AppendInt(nil, 3), []string{"a", "b"}), []byte{0, 5})
	f.Fuzz(func(t *testing.T, input, script []byte) {
		d := jute.NewDecoder(input)
		for _, op := range script {
			before := d.Remaining()
			failed := d.Err() != nil
			switch op % 8 {
			case 0:
				d.Int()
			case 1:
				d.Long()
			case 2:
				d.Bool()
			case 3:
				d.Buffer()
			case 4:
				if s := d.String(); !utf8.ValidString(s) {
					t.Fatalf("invalid UTF-8 came through: %q", s)
				}
			case 5:
				d.Strings()
			case 6:
				d.NullString()
			case 7:
				d.Count(int(op))
			}
			if failed && (d.Err() == nil || d.Remaining() != before) {
				t.Fatal("the error did not stick")
			}
		}
	})
}
