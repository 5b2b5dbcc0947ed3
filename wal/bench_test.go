package wal_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// nullFS is a disk that discards all writes, so that only the cost of the log is measured.
type nullFS struct{ vfs.FS }

type nullFile struct{ vfs.File }

func (f nullFS) OpenRW(name string) (vfs.File, error) {
	file, err := f.FS.OpenRW(name)
	return nullFile{file}, err
}

func (nullFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nullFile) Preallocate(int64, int64) error         { return nil }
func (nullFile) Sync() error                            { return nil }

func TestAppend_AllocatesNothing(t *testing.T) {
	l, _ := mustOpen(t, wal.Config{FS: nullFS{vfstest.NewMem()}})
	batch := []wal.Batch{{State: make([]byte, 20), Entries: []wal.Entry{{Index: 0, Data: make([]byte, 100)}}}, {}}
	appendNext := func() {
		batch[0].Entries[0].Index = l.LastIndex() + 1
		if err := l.Append(batch...); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, appendNext); n != 0 {
		t.Errorf("an append allocates %v times, want 0", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAppend_Log measures an append without the disk.
func BenchmarkAppend_Log(b *testing.B) {
	l, _ := mustOpen(b, wal.Config{FS: nullFS{vfstest.NewMem()}})
	batch := []wal.Batch{{Entries: []wal.Entry{{Data: make([]byte, 100)}}}}
	b.ReportAllocs()
	for b.Loop() {
		batch[0].Entries[0].Index = l.LastIndex() + 1
		mustAppend(b, l, batch...)
	}
}

// BenchmarkAppend appends entries of 100 bytes on the real disk, 1 and 100 batches per sync. ns/op
// is one Append. The log is compacted meanwhile, so segments are recycled as in a server. Compare
// it with BenchmarkFdatasync.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("batches=%d", n), func(b *testing.B) {
			l, _, err := wal.Open(b.TempDir(), wal.Config{})
			if err != nil {
				b.Fatal(err)
			}
			batches := make([]wal.Batch, n)
			for i := range batches {
				batches[i].Entries = []wal.Entry{{Data: make([]byte, 100)}}
			}
			b.SetBytes(int64(n * 100))
			b.ReportAllocs()
			for b.Loop() {
				for i := range batches {
					batches[i].Entries[0].Index = l.LastIndex() + 1 + uint64(i)
				}
				mustAppend(b, l, batches...)
				if l.LastIndex()%1000 == 0 {
					if err := l.Compact(l.LastIndex()); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkFdatasync is a lower bound for BenchmarkAppend: it writes the same bytes sequentially to
// a preallocated file, with one fdatasync each.
func BenchmarkFdatasync(b *testing.B) {
	for _, size := range []int{152, 11_736} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			const fileBytes = 64 << 20
			f, err := vfs.OS{}.Create(filepath.Join(b.TempDir(), "file"))
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Preallocate(0, fileBytes); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			buf, off := make([]byte, size), int64(0)
			for b.Loop() {
				if _, err := f.WriteAt(buf, off); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				if off += int64(size); off+int64(size) > fileBytes {
					off = 0
				}
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkOpen_Empty measures a first start: an empty directory gets its first segment, partly
// preallocated.
func BenchmarkOpen_Empty(b *testing.B) {
	root := b.TempDir()
	i := 0
	for b.Loop() {
		l, _, err := wal.Open(filepath.Join(root, fmt.Sprint(i)), wal.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkOpen_Million recovers 1,000,000 entries of 100 bytes, 1 and 100 per append.
func BenchmarkOpen_Million(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			l, _, err := wal.Open(dir, wal.Config{NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			batch := wal.Batch{Entries: make([]wal.Entry, n)}
			for l.LastIndex() < 1_000_000 {
				for i := range batch.Entries {
					batch.Entries[i] = wal.Entry{Index: l.LastIndex() + 1 + uint64(i), Data: make([]byte, 100)}
				}
				mustAppend(b, l, batch)
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				l, rec, err := wal.Open(dir, wal.Config{})
				if err != nil {
					b.Fatal(err)
				}
				if len(rec.Entries) != 1_000_000 {
					b.Fatalf("%d entries", len(rec.Entries))
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
