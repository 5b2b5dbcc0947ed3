package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// record encodes a record of fields: uint32, uint64 or string.
func record(kind byte, fields ...any) []byte {
	b := []byte{kind}
	for _, f := range fields {
		switch f := f.(type) {
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, f)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, f)
		case string:
			b = append(b, f...)
		}
	}
	return b
}

// Records that no version writes are damage, although their frame has the right checksum. The
// records are read after those of a log with the entries 5 to 7.
func TestReplay_Records(t *testing.T) {
	const last = math.MaxUint64
	entry := func(data string) string { return string(record(byte(len(data)), "\x00\x00\x00"+data)) }
	for _, tc := range []struct {
		what    string
		payload []byte
		want    string // the content, or what is expected instead
	}{
		{"nothing", nil, `"s" 4 [5="e" 6="f" 7="g"]`},
		{"state", record(recordState, uint32(3), "abc"), `"abc" 4 [5="e" 6="f" 7="g"]`},
		{"empty state", record(recordState, uint32(0)), `"" 4 [5="e" 6="f" 7="g"]`},
		{"two states", append(record(recordState, uint32(1), "x"), record(recordState, uint32(1), "y")...), `"y" 4 [5="e" 6="f" 7="g"]`},
		{"no length of a state", record(recordState, "abc"), "a record of this version, not type 1 with 3 bytes left"},
		{"short state", record(recordState, uint32(4), "abc"), "a record of this version, not type 1 with 7 bytes left"},
		{"reset", record(recordReset, uint64(9)), `"s" 9 []`},
		{"reset to 1", record(recordReset, uint64(1)), `"s" 1 []`},
		{"reset to 0", record(recordReset, uint64(0)), "an index to reset to, not 0"},
		{"reset to the end", record(recordReset, uint64(last)), "an index to reset to, not 18446744073709551615"},
		{"reset before the end", record(recordReset, uint64(last-1)), `"s" 18446744073709551614 []`},
		{"short reset", record(recordReset, "1234567"), "a record of this version, not type 2 with 7 bytes left"},
		{"entries", record(recordEntries, uint64(8), uint32(2), entry("h"), entry("")), `"s" 4 [5="e" 6="f" 7="g" 8="h" 9=""]`},
		{"two without data", record(recordEntries, uint64(8), uint32(2), uint32(0), uint32(0)), `"s" 4 [5="e" 6="f" 7="g" 8="" 9=""]`},
		{"in place of others", record(recordEntries, uint64(6), uint32(1), entry("F")), `"s" 4 [5="e" 6="F"]`},
		{"in place of all", record(recordEntries, uint64(5), uint32(1), entry("E")), `"s" 4 [5="E"]`},
		{"below all", record(recordEntries, uint64(4), uint32(1), entry("D")), `"s" 3 [4="D"]`},
		{"entry 1", record(recordEntries, uint64(1), uint32(1), entry("A")), `"s" 0 [1="A"]`},
		{"entry 0", record(recordEntries, uint64(0), uint32(1), entry("A")), "entries from 8 or less, not entries from 0"},
		{"gap", record(recordEntries, uint64(9), uint32(1), entry("A")), "entries from 8 or less, not entries from 9"},
		{"no entries", record(recordEntries, uint64(8), uint32(0)), "a count of entries that fits, not 0"},
		{"too many", record(recordEntries, uint64(8), uint32(2), "1234567"), "a count of entries that fits, not 2"},
		{"short entries", record(recordEntries, "12345678901"), "a record of this version, not type 3 with 11 bytes left"},
		{"long entry", record(recordEntries, uint64(8), uint32(1), uint32(2), "a"), "an entry that fits in its frame, not 5 bytes left"},
		{"no length of an entry", record(recordEntries, uint64(8), uint32(2), entry("a"), "abc"), "an entry that fits in its frame, not 3 bytes left"},
		{"beyond the end", append(record(recordReset, uint64(last-2)), record(recordEntries, uint64(last-1), uint32(2), entry(""), entry(""))...), "a count of entries that fits, not 2"},
		{"up to the end", append(record(recordReset, uint64(last-2)), record(recordEntries, uint64(last-1), uint32(1), entry("z"))...), `"s" 18446744073709551613 [18446744073709551614="z"]`},
		{"type 0", []byte{0}, "a record of this version, not type 0 with 0 bytes left"},
		{"entries of type 4", record(4, uint64(8), uint32(1), entry("A")), "a record of this version, not type 4 with 17 bytes left"},
		{"type 4", []byte{4, 0}, "a record of this version, not type 4 with 1 bytes left"},
		{"a type after others", append(record(recordState, uint32(1), "x"), 9), "a record of this version, not type 9 with 0 bytes left"},
	} {
		r := &replay{}
		before := Batch{State: []byte("s"), Reset: 4, Entries: []Entry{{5, nil, []byte("e")}, {6, []byte("f"), nil}, {7, nil, []byte("g")}}}
		if want, got, ok := r.payload(before.append(nil)); !ok {
			t.Fatal(want, got)
		}
		want, got, ok := r.payload(tc.payload)
		if ok {
			var es []string
			for _, e := range r.entries {
				es = append(es, fmt.Sprintf("%d=%q", e.Index, e.Data))
			}
			want, got = fmt.Sprintf("%q %d %v", r.state, r.base, es), ""
		} else {
			got = ", not " + got
		}
		if want+got != tc.want || r.state == nil {
			t.Errorf("%s: %s%s; want %s", tc.what, want, got, tc.want)
		}
	}
}

// drawBatches draws batches, most of which continue the log.
func drawBatches(t *rapid.T, p position) (b Batch) {
	if rapid.IntRange(0, 2).Draw(t, "state") == 0 {
		b.State = []byte(strings.Repeat("s", rapid.IntRange(0, 20).Draw(t, "bytes of the state")))
	}
	if rapid.IntRange(0, 5).Draw(t, "reset") == 0 {
		b.Reset = rapid.Uint64Range(1, 9).Draw(t, "reset to")
		p = position{b.Reset + 1, b.Reset}
	}
	from := rapid.Uint64Range(max(p.first, 1)-1, p.last+2).Draw(t, "from")
	for i := range rapid.Uint64Range(0, 4).Draw(t, "entries") {
		e := Entry{Index: from + i, Data: bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, 9).Draw(t, "bytes of an entry"))}
		e.Head = bytes.Repeat([]byte("h"), rapid.IntRange(0, 2).Draw(t, "bytes of its head"))
		if rapid.IntRange(0, 30).Draw(t, "gap") == 0 {
			e.Index++
		}
		b.Entries = append(b.Entries, e)
	}
	return b
}

// A batch that after accepts has encodedBytes bytes, and reading it gives the position that after
// returned. A batch is refused only if it has a gap, or does not continue the log.
func TestBatch_AgainstReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := position{first: 1}, &replay{}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			b := drawBatches(t, p)
			first, last := p.first, p.last
			if b.Reset != 0 {
				first, last = b.Reset+1, b.Reset
			}
			valid := len(b.Entries) == 0 || b.Entries[0].Index >= first && b.Entries[0].Index <= last+1
			for i := range b.Entries {
				valid = valid && b.Entries[i].Index == b.Entries[0].Index+uint64(i)
			}
			next, err := p.after(&b)
			if (err == nil) != valid || err != nil && !errors.Is(err, ErrOrder) {
				t.Fatalf("%+v after %+v: %v", b, p, err)
			}
			if err != nil {
				continue
			}
			data := b.append(nil)
			if int64(len(data)) != b.encodedBytes() {
				t.Fatalf("%+v has %d bytes, encodedBytes says %d", b, len(data), b.encodedBytes())
			}
			if want, got, ok := r.payload(data); !ok {
				t.Fatalf("%+v: want %s, got %s", b, want, got)
			}
			if p = next; p.last != r.last() || p.first != r.base+1 {
				t.Fatalf("after %+v the log has entries %d to %d, read are %d to %d", b, p.first, p.last, r.base+1, r.last())
			}
			if n := len(b.Entries); n > 0 && !slices.EqualFunc(r.entries[len(r.entries)-n:], b.Entries, func(x, y Entry) bool { return x.Index == y.Index && bytes.Equal(x.Data, slices.Concat(y.Head, y.Data)) }) {
				t.Fatalf("%+v is read as %+v", b.Entries, r.entries)
			}
		}
	})
}

// forget keeps the entries from an index on, and the last bytes of those before.
func TestReplay_Forget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &replay{base: rapid.Uint64Range(0, 5).Draw(t, "base")}
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 12).Draw(t, "sizes") {
			r.entries = append(r.entries, Entry{r.last() + 1, nil, make([]byte, size)})
		}
		all, last := r.entries, r.last()
		index, keep := rapid.Uint64Range(0, 20).Draw(t, "index"), rapid.Int64Range(0, 30).Draw(t, "keep")
		r.forget(index, keep)
		stay := uint64(0)
		for i := len(all) - 1; i >= 0; i-- {
			if size := int64(len(all[i].Data)); all[i].Index < index {
				if keep < size {
					break
				}
				keep -= size
			}
			stay++
		}
		if r.last() != last || uint64(len(r.entries)) != stay || stay > 0 && r.entries[0].Index != r.base+1 {
			t.Fatalf("%d entries after %d stay, want the last %d", len(r.entries), r.base, stay)
		}
		if dropped := uint64(len(all)) - stay; dropped > 0 && stay > 0 && &r.entries[0] == &all[dropped] {
			t.Fatal("the entries that stay keep the others in memory")
		}
	})
}

// Each field of a header is checked, damage before the version, and the fields of a valid one come
// back.
func TestSegmentHeader(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	le := binary.LittleEndian
	for _, recycled := range []bool{false, true} {
		h := segmentHeader{number: 1 << 40, salt: 1 << 41, firstSeq: 1 << 42, firstIndex: 1 << 43, prevCRC: 1 << 20, recycled: recycled}
		b, sum := h.append([]byte("before"), table)
		got, crc, err := decodeSegmentHeader(b[6:], table)
		if got != h || crc != sum || err != nil || len(b) != 6+segmentHeaderBytes {
			t.Errorf("%+v becomes %+v, %v", h, got, err)
		}
	}
	for _, tc := range []struct {
		what   string
		change func(b []byte)
		offset int64
		want   string
	}{
		{"nothing", func([]byte) {}, 0, ""},
		{"magic", func(b []byte) { b[7] = 'x' }, 0, `want "gozkdWAL", got "gozkdWAx"`},
		{"version 0", func(b []byte) { b[8] = 0 }, 8, "a format version"},
		{"version 2", func(b []byte) { b[8] = 2 }, -1, "it has version 2, this program reads versions up to 1"},
		{"version 2, reserved bits", func(b []byte) { b[8], b[59] = 2, 1 }, -1, "it has version 2"},
		{"another flag", func(b []byte) { b[12] = 2 }, 12, "reserved bits that are zero"},
		{"reserved bits", func(b []byte) { b[59] = 1 }, 12, "reserved bits that are zero"},
		{"number 0", func(b []byte) { clear(b[16:24]) }, 16, "got 0, 3 and 4"},
		{"sequence 0", func(b []byte) { clear(b[32:40]) }, 16, "got 2, 0 and 4"},
		{"index 0", func(b []byte) { clear(b[40:48]) }, 16, "got 2, 3 and 0"},
		{"salt 0", func(b []byte) { clear(b[24:32]) }, 0, ""},
	} {
		b, _ := segmentHeader{number: 2, salt: 9, firstSeq: 3, firstIndex: 4}.append(nil, table)
		tc.change(b)
		le.PutUint32(b[60:], crc32.Checksum(b[:60], table))
		_, _, err := decodeSegmentHeader(b, table)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.what, err)
		}
		var corrupt *CorruptError
		if damage := errors.As(err, &corrupt); damage != (tc.want != "" && tc.offset >= 0) || damage && corrupt.Offset != tc.offset {
			t.Errorf("%s: %v, want damage at %d", tc.what, err, tc.offset)
		}
		b[60]++
		if _, _, err := decodeSegmentHeader(b, table); !errors.As(err, &corrupt) || corrupt.Offset != 0 {
			t.Errorf("%s, with a wrong checksum: %v", tc.what, err)
		}
	}
}

func TestFormat_SizesAndNames(t *testing.T) {
	for n, want := range map[int64]int64{0: 32, 1: 40, 8: 40, 9: 48, 16: 48} {
		if got := frameBytes(n); got != want {
			t.Errorf("a frame with %d bytes takes %d, want %d", n, got, want)
		}
	}
	for name, want := range map[string]uint64{
		"0000000000000001.wal": 1, "00000000000000ab.wal": 0xab, "ffffffffffffffff.wal": math.MaxUint64,
		"00000000000000AB.wal": 0, "000000000000001.wal": 0, "00000000000000001.wal": 0, "000000000000000g.wal": 0, "0000000000000001": 0, ".wal": 0,
		"0000000000000001.wal.old": 0, "0000000000000001.spare": 0,
	} {
		if got, ok := parseName(name, segmentSuffix); got != want || ok != (want != 0) {
			t.Errorf("%s is segment %d, %v; want %d", name, got, ok, want)
		}
	}
	const mb = 1 << 20
	for _, tc := range []struct{ size, need, segment, want int64 }{
		{0, 1, 64 * mb, mb}, {0, mb, 64 * mb, mb}, {0, mb + 1, 64 * mb, 2 * mb}, {mb, mb, 64 * mb, mb}, {mb, mb + 1, 64 * mb, 4 * mb},
		{4 * mb, 4*mb + 1, 64 * mb, 8 * mb}, {60 * mb, 61 * mb, 63 * mb, 63 * mb}, {60 * mb, 65 * mb, 64 * mb, 65 * mb}, {0, 10, 4096, 4096}, {4096, 5000, 4096, 5000}, {9, 8, 7, 9},
	} {
		if got := grownSize(tc.size, tc.need, tc.segment); got != tc.want {
			t.Errorf("a file of %d bytes for %d, of a segment of %d, becomes one of %d, want %d", tc.size, tc.need, tc.segment, got, tc.want)
		}
	}
	l := &Log{cfg: Config{SegmentBytes: 1000}}
	for bytes, want := range map[int64]bool{499: false, 500: true, 1000: true, 2000: true, 2001: false} {
		if got := l.fitsSpare(bytes); got != want {
			t.Errorf("a file of %d bytes for segments of 1000 is kept: %v", bytes, got)
		}
	}
}

// Payloads are copied one after the other into blocks, large ones into blocks of their own.
func TestArena(t *testing.T) {
	a := &arena{}
	var copies [][]byte
	put := func(n, want int) {
		t.Helper()
		p := bytes.Repeat([]byte{byte(len(copies) + 1)}, n)
		c := a.copy(p)
		if !bytes.Equal(c, p) || cap(c) != len(c) || n > 0 && &c[0] == &p[0] || len(a.buf) != want {
			t.Errorf("%d bytes: a copy of %d, up to %d, the block has %d, want %d", n, len(c), cap(c), len(a.buf), want)
		}
		clear(p)
		copies = append(copies, c)
	}
	const quarter = arenaBytes / 4
	for i := range 4 {
		put(quarter, (i+1)*quarter)
	}
	put(0, 4*quarter)
	put(1, 1)
	put(quarter+1, 1)
	put(7, 8)
	for i, c := range copies {
		if bytes.Count(c, []byte{byte(i + 1)}) != len(c) {
			t.Errorf("copy %d has changed", i)
		}
	}
}

// A log keeps its buffer for the next append, unless it is large.
func TestLog_KeepsASmallBuffer(t *testing.T) {
	l, _, err := Open("data", Config{FS: vfstest.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, keepBufferBytes + 1, 100} {
		if err := l.Append(Batch{State: make([]byte, n)}); err != nil {
			t.Fatal(err)
		}
		if kept := cap(l.buf); (kept > 0) != (n == 100) || kept > keepBufferBytes {
			t.Errorf("after an append of %d bytes the buffer has %d", n, kept)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
