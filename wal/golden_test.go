package wal_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

var rewrite = flag.Bool("rewrite", false, "write the golden log of the current format version; read the change before you commit it")

// goldenSteps makes the log of testdata/v1: two segments, the second of which is a recycled file,
// with each kind of record.
func goldenSteps() []step {
	return []step{
		{batches: []wal.Batch{{State: []byte("term 1")}, {Entries: entries(1, 3, "first ")}}},
		{batches: []wal.Batch{{Entries: []wal.Entry{{Index: 4, Data: bytes.Repeat([]byte("long "), 760)}}}}},
		{batches: []wal.Batch{{State: []byte("term 2"), Entries: entries(4, 2, "in place of the long one ")}}},
		{batches: []wal.Batch{{Entries: []wal.Entry{{Index: 6, Data: bytes.Repeat([]byte("old "), 950)}}}}},
		{compact: 5},
		{batches: []wal.Batch{{Reset: 20}, {Entries: entries(21, 1, "behind a snapshot ")}}},
		{batches: []wal.Batch{{State: []byte{}}, {Entries: []wal.Entry{{Index: 22}}}}},
	}
}

// This program reads a log of format version 1, and still writes the same bytes.
func TestGolden_Version1(t *testing.T) {
	mem := vfstest.NewMem()
	r := newRun(wal.Config{FS: mem, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)})
	if err := r.steps(goldenSteps()); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "v1")
	names, err := mem.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(golden, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(golden, name), readAll(t, mem, filepath.Join(dir, name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(names) {
		t.Errorf("%d files are written, testdata has %d", len(names), len(files))
	}
	copied := vfstest.NewMem()
	if err := copied.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(golden, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, mem, filepath.Join(dir, file.Name())); !bytes.Equal(got, want) {
			t.Errorf("%s is not written as it was: the format has changed without its version", file.Name())
		}
		writeAll(t, copied, filepath.Join(dir, file.Name()), want)
	}
	l, rec := mustOpen(t, wal.Config{FS: copied, SegmentBytes: wal.MinSegmentBytes})
	if err := r.acked.check(l, rec); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
