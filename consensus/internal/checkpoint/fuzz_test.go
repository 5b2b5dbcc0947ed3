package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Any damage to any page of a file ends in an error or in the state as it was read, never in a panic, or in more memory or time than the file is worth.
func FuzzPages(f *testing.F) {
	mem := vfs.NewMem()
	file, err := mem.Create("checkpoint.db")
	if err != nil {
		f.Fatal(err)
	}
	var old *pageReader
	for index := range uint64(3) {
		d := make(delta)
		for i := range 60 {
			d[fmt.Sprintf("%03d", i*int(index+1))] = strings.Repeat("v", 10*i)
		}
		if err := mergeDelta(file, old, d, index); err != nil {
			f.Fatal(err)
		}
		if old, err = newPageReader(file, true); err != nil {
			f.Fatal(err)
		}
	}
	size, err := file.Size()
	if err != nil {
		f.Fatal(err)
	}
	good := make([]byte, size)
	if _, err := file.ReadAt(good, 0); err != nil {
		f.Fatal(err)
	}
	for page := range uint32(size / minPageSize) {
		f.Add(page*minPageSize+8, []byte{0xff}, uint32(0))
		f.Add(page*minPageSize+12, []byte{1, 0, 0, 0x80}, uint32(0))
		f.Add(page*minPageSize+pageHeader, []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint32(1))
	}
	limit := 4 * uint64(size)
	f.Fuzz(func(t *testing.T, at uint32, damage []byte, more uint32) {
		bad := bytes.Clone(good)
		for i, b := range damage {
			bad[(int(at)+i)%len(bad)] ^= b
		}
		if more > 0 { // in a meta page whose sum is right: what it refers to may be anything
			m := bad[int(more%2)*minPageSize+pageHeader:][:metaBytes]
			binary.NativeEndian.PutUint64(m[metaBytes-8:], metaChecksum(m))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := newPageReader(bytesFile{bytes.NewReader(bad)}, false)
		if err == nil {
			err = walk(p)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+limit {
			t.Errorf("%d bytes for a file of %d: %v", used, size, err)
		}
		// What is read without complaint can be merged into, or is refused then.
		copied, createErr := vfs.NewMem().Create("f")
		if createErr != nil {
			t.Fatal(createErr)
		}
		if _, err := copied.WriteAt(bad, 0); err != nil {
			t.Fatal(err)
		}
		if p, err := newPageReader(copied, false); err == nil {
			_ = mergeDelta(copied, p, delta{"030": "w", "055": "", "9": "x"}, 3) // an error will do
		}
	})
}

// bytesFile is a file that can only be read.
type bytesFile struct{ *bytes.Reader }

func (f bytesFile) WriteAt([]byte, int64) (int, error) { return 0, os.ErrPermission }
func (f bytesFile) Sync() error                        { return os.ErrPermission }
func (f bytesFile) Preallocate(int64, int64) error     { return os.ErrPermission }
func (f bytesFile) Close() error                       { return nil }
func (f bytesFile) Size() (int64, error)               { return f.Reader.Size(), nil }
