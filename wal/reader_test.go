package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// A frame counts if its kind, its segment, its number, the frame before it and its content are
// right, and if it is whole.
func TestReader_Next(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	frame := func(kind byte, salt, seq uint64, prev uint32, payload string) []byte {
		b := append(make([]byte, frameHeaderBytes), payload...)
		for len(b)%frameAlign != 0 {
			b = append(b, 0)
		}
		frameHeader{kind: kind, length: uint32(len(payload)), salt: salt, seq: seq, prev: prev}.seal(b, table)
		return b
	}
	for _, tc := range []struct {
		what  string
		frame []byte
		ok    bool
		why   string
	}{
		{"a frame", frame(frameAppend, 7, 20, 9, "payload"), true, ""},
		{"an empty frame", frame(frameAppend, 7, 20, 9, ""), true, ""},
		{"zeros", make([]byte, 64), false, "no frame"},
		{"another kind", frame(2, 7, 20, 9, "payload"), false, "no frame"},
		{"another segment", frame(frameAppend, 8, 20, 9, "payload"), false, "a frame 20 of another chain"},
		{"a later frame", frame(frameAppend, 7, 21, 9, "payload"), false, "a frame 21 of another chain"},
		{"after another frame", frame(frameAppend, 7, 20, 8, "payload"), false, "a frame 20 of another chain"},
		{"a frame that is cut off", frame(frameAppend, 7, 20, 9, "a longer payload")[:40], false, "a frame of 48 bytes, 40 bytes before the end of the file"},
		{"a header that is cut off", frame(frameAppend, 7, 20, 9, "")[:31], false, "the end of the file"},
		{"a changed payload", bytes.Replace(frame(frameAppend, 7, 20, 9, "payload"), []byte("pay"), []byte("Pay"), 1), false, "whose header says"},
	} {
		reads := 0
		r := fileOf(t, append(make([]byte, 64), tc.frame...), &reads)
		r.header.salt, r.last, r.end = 7, 64, 64
		payload, ok, err := r.next(20, 9)
		if ok != tc.ok || err != nil || !strings.Contains(r.why, tc.why) || ok && string(payload) != strings.TrimRight(string(tc.frame[32:]), "\x00") {
			t.Errorf("%s: %q, %v, %v, %s", tc.what, payload, ok, err, r.why)
		}
		if want := int64(64 + len(tc.frame)); r.last != 64 || ok && (r.end != want || r.crc != binary.LittleEndian.Uint32(tc.frame[28:])) {
			t.Errorf("%s: the last frame is from %d to %d", tc.what, r.last, r.end)
		}
		if _, again, err := r.next(21, r.crc); again || err != nil || ok && r.why != "the end of the file" {
			t.Errorf("%s: there is another frame, %v, %s", tc.what, err, r.why)
		}
	}
	reads := 0
	r := fileOf(t, append(append(make([]byte, 64), frame(frameAppend, 7, 20, 9, "one")...), frame(frameAppend, 7, 21, 5, "two")...), &reads)
	r.header.salt, r.last, r.end = 7, 64, 64
	for i, prev := range []uint32{9, 5} {
		if _, ok, err := r.next(20+uint64(i), prev); !ok || err != nil || r.last != int64(64+40*i) || r.end != r.last+40 {
			t.Errorf("frame %d is from %d to %d, %v", i, r.last, r.end, err)
		}
	}
}

// A record that no version writes is damage at its frame.
func TestOpen_BadRecord(t *testing.T) {
	cfg := Config{FS: vfstest.NewMem()}
	l, _, err := Open("data", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Batch{State: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	end := l.tail.end
	if _, err := l.tail.f.WriteAt(l.seal(append(make([]byte, frameHeaderBytes), 9), l.tail.salt), end); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = Open("data", cfg)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != end || corrupt.Want != "a record of this version" {
		t.Errorf("%v, want damage at %d", err, end)
	}
}

// The header of a file must be whole, and that of the segment that the name says.
func TestReader_Header(t *testing.T) {
	header, crc := segmentHeader{number: 3, salt: 9, firstSeq: 1, firstIndex: 1}.append(nil, crc32.MakeTable(crc32.Castagnoli))
	for _, tc := range []struct {
		content []byte
		number  uint64
		offset  int64
		want    string
	}{
		{header, 3, 0, ""}, {header, 0, 0, ""}, {header, 4, 16, "want segment 4, as the file's name says, got segment 3"},
		{header[:63], 3, 0, "want a header of 64 bytes, got a file of 63 bytes"}, {make([]byte, 64), 3, 0, `want "gozkdWAL"`},
	} {
		reads := 0
		r := fileOf(t, tc.content, &reads)
		err := r.readHeader(tc.number)
		var corrupt *CorruptError
		switch {
		case tc.want == "" && (err != nil || r.header.number != 3 || r.crc != crc || r.last != 64 || r.end != 64):
			t.Errorf("segment %d: %v, %+v", tc.number, err, r)
		case tc.want != "" && (!errors.As(err, &corrupt) || corrupt.Path != "file" || corrupt.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "wal: corrupt: file at")):
			t.Errorf("segment %d: %v, want %s at %d", tc.number, err, tc.want, tc.offset)
		}
	}
}

// A segment continues the one before, or the error names the one that is damaged.
func TestReader_Follows(t *testing.T) {
	previous := &reader{path: "previous", end: 900, why: "no frame"}
	for _, tc := range []struct {
		what           string
		firstSeq, prev uint64
		firstIndex     uint64
		path           string
		offset         int64
		want           string
	}{
		{"in order", 20, 7, 31, "", 0, ""},
		{"frames are missing", 22, 7, 31, "previous", 900, "frames 20 to 21, because segment 3 follows"},
		{"another chain", 20, 8, 31, "previous", 900, "frames 20 to 19"},
		{"frames are repeated", 19, 7, 31, "this", 32, "frame 20 and entry 31 to follow"},
		{"frames of another chain are repeated", 19, 8, 31, "this", 32, "frame 20"},
		{"entries are missing", 20, 7, 32, "this", 32, "entry 31"},
		{"entries are repeated", 20, 7, 30, "this", 32, "entry 31"},
	} {
		r := &reader{path: "this", header: segmentHeader{number: 3, firstSeq: tc.firstSeq, prevCRC: uint32(tc.prev), firstIndex: tc.firstIndex}}
		err := r.follows(previous, 20, 7, 30)
		if tc.path == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.what, err)
			}
			continue
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Path != tc.path || corrupt.Offset != tc.offset || !strings.Contains(corrupt.Want, tc.want) {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
}

var errBroken = errors.New("broken")

// fileOf returns a reader of a file with that content, and counts its reads. The read that makes
// the count 0 fails with errBroken.
func fileOf(t testing.TB, content []byte, reads *int) *reader {
	t.Helper()
	mem := vfstest.NewMem()
	f, err := mem.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fs := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRead {
			if *reads++; *reads == 0 {
				return errBroken
			}
		}
		return nil
	})
	r, err := openReader(fs, "file", crc32.MakeTable(crc32.Castagnoli))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.f.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// at returns any part of a file, reads each window of a file once if it is asked in order, and does
// not trust a window that could not be read.
func TestReader_At(t *testing.T) {
	content := make([]byte, 2*windowBytes+1000)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	reads := 0
	r := fileOf(t, content, &reads)
	check := func(off, n int64) {
		t.Helper()
		if got, err := r.at(off, n); err != nil || !bytes.Equal(got, content[off:off+n]) {
			t.Fatalf("%d bytes at %d: %v", n, off, err)
		}
	}
	for off := int64(0); off < r.size; off += 8 {
		check(off, 8)
		check(off, 1)
	}
	if reads != 3 {
		t.Errorf("%d reads for %d windows", reads, 3)
	}
	for _, part := range [][2]int64{{0, 3}, {0, r.size}, {1, r.size - 1}, {r.size - 1, 1}, {r.size, 0}, {windowBytes - 1, 2}, {5, windowBytes}, {4, windowBytes}, {4, windowBytes + 1}} {
		check(part[0], part[1])
	}
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.Int64Range(0, r.size).Draw(t, "offset")
		n := rapid.Int64Range(0, r.size-off).Draw(t, "bytes")
		if got, err := r.at(off, n); err != nil || !bytes.Equal(got, content[off:off+n]) {
			t.Fatalf("%d bytes at %d: %v", n, off, err)
		}
	})
	r.buf = nil
	r.size += 10
	for _, n := range []int64{20, 20, 1} {
		if _, err := r.at(r.size-20, n); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a file that has shrunk: %v", err)
		}
	}
}

// What follows the last good frame is an append that a power loss tore, unless a later frame is
// there.
func TestReader_ScanTail(t *testing.T) {
	const end, size, salt, seq = 104, 2*windowBytes + 512, 77, 10
	header := func(b []byte, salt, seq uint64) {
		binary.LittleEndian.PutUint32(b, frameAppend)
		binary.LittleEndian.PutUint32(b[4:], 100)
		binary.LittleEndian.PutUint64(b[8:], salt)
		binary.LittleEndian.PutUint64(b[16:], seq)
	}
	scan := func(content []byte, recycled bool) (torn, later int64) {
		t.Helper()
		reads := 0
		r := fileOf(t, content, &reads)
		r.end, r.header = end, segmentHeader{salt: salt, recycled: recycled}
		torn, later, err := r.scanTail(seq)
		if err != nil {
			t.Fatal(err)
		}
		return torn, later
	}
	for _, recycled := range []bool{false, true} {
		for _, at := range []int{end + 8, end + 16, end + 512, end + windowBytes - 24, end + windowBytes - 16, end + windowBytes - 8, end + windowBytes, end + windowBytes + 8, size - 24} {
			for _, tc := range []struct {
				salt, seq uint64
				want      bool
			}{{salt, seq + 1, true}, {salt, seq, false}, {salt, seq - 1, false}, {salt + 1, seq + 1, false}} {
				content := make([]byte, size)
				header(content[at:], tc.salt, tc.seq)
				want := int64(-1)
				if tc.want {
					want = int64(at)
				}
				if torn, later := scan(content, recycled); later != want || (torn != 0) == recycled {
					t.Errorf("recycled %v, frame %d of salt %d at %d: torn %d, later %d", recycled, tc.seq, tc.salt, at, torn, later)
				}
			}
		}
		content := make([]byte, size)
		header(content[size-64:], salt, seq+5)
		header(content[end+64:], salt, seq+9)
		header(content[end:], salt, seq+1) // here the number may be left over
		if _, later := scan(content, recycled); later != end+64 {
			t.Errorf("recycled %v: the first later frame is at %d", recycled, later)
		}
	}
	for _, tc := range []struct {
		recycled bool
		size     int
		change   func(b []byte)
		want     int64
	}{
		{false, size, func([]byte) {}, 0},
		{false, size, func(b []byte) { b[end] = 1 }, 8},
		{false, size, func(b []byte) { b[end+7] = 1 }, 8},
		{false, size, func(b []byte) { b[end+8] = 1 }, 16},
		{false, size, func(b []byte) { b[size-1], b[end] = 1, 1 }, size - end},
		{false, end + 16, func(b []byte) { b[end+8] = 1 }, 16},
		{false, size, func(b []byte) { copy(b[end:], bytes.Repeat([]byte{1}, size)) }, size - end},
		{true, size, func([]byte) {}, 0},
		{true, size, func(b []byte) { b[end+40] = 1 }, 0},
		{true, size, func(b []byte) { header(b[end:], salt, seq) }, 32 + 104},
		{true, size, func(b []byte) { header(b[end:], salt+1, seq) }, 0},
		{true, size, func(b []byte) { header(b[end:], salt, seq); b[end] = 9 }, 0},
		{true, end + 72, func(b []byte) { header(b[end:], salt, seq) }, 72},
		{true, end + 32, func(b []byte) { header(b[end:], salt, seq) }, 32},
		{true, end + 31, func(b []byte) { header(b[end:], salt, seq) }, 0},
		{true, end + 24, func(b []byte) { header(b[end:], salt, seq) }, 0},
	} {
		content := make([]byte, tc.size)
		tc.change(content)
		if torn, later := scan(content, tc.recycled); torn != tc.want || later >= 0 {
			t.Errorf("recycled %v, %d bytes %x...: torn %d, want %d; later %d", tc.recycled, tc.size-end, content[end:min(end+48, tc.size)], torn, tc.want, later)
		}
	}
}

// A read that fails, whichever it is, is an error, and not the end of the log.
func TestReader_ReadFails(t *testing.T) {
	const salt, seq = 77, 10
	content := make([]byte, 2*windowBytes+512)
	frame := content[windowBytes-frameHeaderBytes:]
	binary.LittleEndian.PutUint32(frame, frameAppend)
	binary.LittleEndian.PutUint32(frame[4:], 100)
	binary.LittleEndian.PutUint64(frame[8:], salt)
	binary.LittleEndian.PutUint64(frame[16:], seq)
	next := func(r *reader) error {
		r.end, r.header = windowBytes-frameHeaderBytes, segmentHeader{salt: salt}
		_, _, err := r.next(seq, 0)
		return err
	}
	for name, f := range map[string]func(r *reader) error{
		"the tail of a recycled file": func(r *reader) error {
			r.end, r.header = 104, segmentHeader{salt: salt, recycled: true}
			_, _, err := r.scanTail(seq)
			return err
		},
		"a frame that begins in the last bytes of a window": func(r *reader) error {
			if _, err := r.at(0, 8); err != nil {
				return err
			}
			return next(r)
		},
		"a frame": next,
	} {
		all := 0
		if err := f(fileOf(t, content, &all)); err != nil || all == 0 {
			t.Fatalf("%s: %v after %d reads", name, err, all)
		}
		for n := 1; n <= all; n++ {
			reads := 0
			r := fileOf(t, content, &reads)
			reads = -n
			if err := f(r); !errors.Is(err, errBroken) {
				t.Errorf("%s: read %d of %d fails: %v", name, n, all, err)
			}
		}
	}
}
