package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// FuzzDamagedFile damages pages of a good file. It may also damage a meta page and correct its
// checksum.
func FuzzDamagedFile(f *testing.F) {
	var deltas []delta
	for index := range 3 {
		d := make(delta)
		for i := range 60 {
			d[fmt.Sprintf("%03d", i*(index+1))] = strings.Repeat("v", 10*i)
		}
		deltas = append(deltas, d)
	}
	good := contents(f, deltas...)
	for page := range uint32(len(good) / minPageSize) {
		f.Add(page*minPageSize+8, []byte{0xff}, uint32(0))
		f.Add(page*minPageSize+12, []byte{1, 0, 0, 0x80}, uint32(0))
		f.Add(page*minPageSize+pageHeader, []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint32(1))
	}
	f.Fuzz(func(t *testing.T, at uint32, damage []byte, more uint32) {
		bad := bytes.Clone(good)
		for i, b := range damage {
			bad[(int(at)+i)%len(bad)] ^= b
		}
		if more > 0 { // correct the checksum of a meta page, whose references may be arbitrary
			m := bad[int(more%2)*minPageSize+pageHeader:][:metaBytes]
			binary.NativeEndian.PutUint64(m[metaBytes-8:], metaChecksum(m))
		}
		mustSurvive(t, bad)
	})
}

// FuzzFile opens files with arbitrary contents.
func FuzzFile(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 3*minPageSize))
	f.Add(contents(f, delta{}, delta{"a": "1", "b": strings.Repeat("2", 2000)}, delta{"a": ""}))
	f.Fuzz(func(t *testing.T, b []byte) { mustSurvive(t, b) })
}

// mustSurvive reads a file, and merges into it. Either of them may fail, but neither may panic,
// loop without end, or allocate much more memory than the file has bytes.
func mustSurvive(t *testing.T, b []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := newPageReader(bytesFile{bytes.NewReader(b)}, Newest)
	if err == nil {
		err = walk(p)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+4*uint64(len(b)) {
		t.Errorf("%d bytes allocated for a file of %d: %v", used, len(b), err)
	}
	f := newMemFile(t)
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if p, err := newPageReader(f, Newest); err == nil {
		_ = mergeDelta(f, p, delta{"030": "w", "055": "", "9": "x"}, 3) // an error is fine
	}
}

// FuzzMerge merges arbitrary changes. Both our reader and bbolt must read the same pairs as a map
// holds.
//
// The input is a sequence of operations of 4 bytes: the kind, a key of two bytes, and the length of
// the value.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("\x01\x00\x01\x09\x01\x00\x02\x09\x00\x00\x00\x00\x01\x00\x01\x00"))
	many := make([]byte, 0, 4*400)
	for i := range 200 {
		many = append(many, 1, 0, byte(i), 200)
	}
	many = append(many, 0, 0, 0, 0)
	for i := range 199 {
		many = append(many, 1, 0, byte(i), 0)
	}
	f.Add(many)
	f.Add(bytes.Repeat([]byte{9, 0, 1, 255, 9, 1, 0, 0, 8}, 60))
	f.Fuzz(func(t *testing.T, ops []byte) {
		file, state, next := newMemFile(t), map[string]string{}, delta{}
		var old *pageReader
		index := uint64(0)
		commit := func() {
			if err := mergeDelta(file, old, next, index); err != nil {
				t.Fatal(err)
			}
			next.to(state)
			if got, is, err := stateOf(file); err != nil || got != index || !maps.Equal(is, state) {
				t.Fatalf("transaction %d: index %d, %d keys, want %d; %v", index, got, len(is), len(state), err)
			}
			var err error
			if old, err = newPageReader(file, NewestOfTwo); err != nil {
				t.Fatal(err)
			}
			index, next = index+1, delta{}
		}
		for len(ops) >= 4 && index < 20 {
			key := fmt.Sprintf("%05d", binary.BigEndian.Uint16(ops[1:])%1000)
			switch ops[0] % 8 {
			case 0:
				commit()
			case 1: // a long key
				next[key+strings.Repeat("k", 10*int(ops[0]))] = strings.Repeat("v", int(ops[3]))
			case 2: // a value of several pages
				next[key] = strings.Repeat("w", 20*int(ops[3]))
			default:
				next[key] = strings.Repeat("x", int(ops[3]))
			}
			ops = ops[4:]
		}
		commit()
		path := filepath.Join(t.TempDir(), "checkpoint.db")
		writeFile(t, path, bytesOf(t, file))
		bboltAgrees(t, path, state)
	})
}

// FuzzStream reads arbitrary streams. An accepted stream must encode the pairs that were read.
func FuzzStream(f *testing.F) {
	var b bytes.Buffer
	if err := WriteStream(&b, 7, testMeta(3), delta{"a": "1", "b": strings.Repeat("2", 300)}.Range); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x01\x01\x01m\xff\xff\xff\xff\x01\x01k"))           // a key of 512 MiB
	f.Add([]byte("\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")) // meta of 2^64 bytes
	f.Fuzz(func(t *testing.T, in []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var pairs [][2]string
		r, err := ReadStream(bytes.NewReader(in))
		if err == nil {
			err = r.Range(func(k, v []byte) error { pairs = append(pairs, [2]string{string(k), string(v)}); return nil })
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+100*uint64(len(in)) {
			t.Errorf("%d bytes allocated for a stream of %d: %v", used, len(in), err)
		}
		if err != nil {
			return
		}
		var out bytes.Buffer
		err = WriteStream(&out, r.Term, r.Meta, func(visit func(k, v []byte) error) error {
			for _, p := range pairs {
				if err := visit([]byte(p[0]), []byte(p[1])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || out.Len() > len(in) { // lengths in the input may be longer than necessary
			t.Errorf("%d bytes become %d, %v", len(in), out.Len(), err)
		}
	})
}

// newMemFile makes an empty file in memory.
func newMemFile(t testing.TB) vfs.File {
	t.Helper()
	f, err := vfstest.NewMem().Create("f")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bytesOf returns the contents of a file.
func bytesOf(t testing.TB, f vfs.File) []byte {
	t.Helper()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// contents returns a file to which the deltas were merged.
func contents(t testing.TB, deltas ...delta) []byte {
	t.Helper()
	f := newMemFile(t)
	var old *pageReader
	for i, d := range deltas {
		err := mergeDelta(f, old, d, uint64(i))
		if err == nil {
			old, err = newPageReader(f, NewestOfTwo)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return bytesOf(t, f)
}

// bytesFile is a read-only file.
type bytesFile struct{ *bytes.Reader }

func (f bytesFile) WriteAt([]byte, int64) (int, error) { return 0, os.ErrPermission }
func (f bytesFile) Sync() error                        { return os.ErrPermission }
func (f bytesFile) Preallocate(int64, int64) error     { return os.ErrPermission }
func (f bytesFile) InPlace() error                     { return os.ErrPermission }
func (f bytesFile) Close() error                       { return nil }
func (f bytesFile) Size() (int64, error)               { return f.Reader.Size(), nil }
