package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// readThenOpen reads a log, then opens it. Both must return the same content or fail alike, and
// reading must change nothing.
func readThenOpen(cfg wal.Config) (*wal.Log, wal.Recovered, error) {
	looking := cfg
	looking.FS = vfstest.NewFaulty(cfg.FS, func(op vfstest.Op) error {
		switch op.Kind {
		case vfstest.OpOpen, vfstest.OpReadDir, vfstest.OpRead:
			return nil
		}
		return fmt.Errorf("reading does %s to %s", op.Kind, op.Path)
	})
	seen, readErr := wal.Read(dir, looking)
	l, rec, err := wal.Open(dir, cfg)
	switch {
	case errors.Is(readErr, fs.ErrNotExist) && err == nil && rec.State == nil && len(rec.Entries) == 0:
	case fmt.Sprint(readErr) != fmt.Sprint(err):
		return l, rec, errors.New("reading ends with " + fmt.Sprint(readErr) + ", opening with " + fmt.Sprint(err)) // it wraps neither, so that no test mistakes it for the expected error
	case err == nil && !reflect.DeepEqual(seen, rec): // after an error, seen is what precedes the damage
		return l, rec, fmt.Errorf("%d entries and %d torn bytes were read, and then %d and %d opened", len(seen.Entries), seen.TornBytes, len(rec.Entries), rec.TornBytes)
	}
	return l, rec, err
}

func TestRead_NoDirectory(t *testing.T) {
	if _, err := wal.Read(dir, wal.Config{FS: vfstest.NewMem()}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := wal.Read(dir, wal.Config{FS: vfstest.NewMem(), SegmentBytes: 1}); err == nil {
		t.Error("a bad Config was taken")
	}
}

// Open returns the entries from an index on, and the last bytes of those before, wherever segments
// begin, and reading a long log needs little memory for the others.
func TestOpen_From(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := wal.Config{FS: vfstest.NewMem(), SegmentBytes: wal.MinSegmentBytes}
		l, _, err := wal.Open(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 2000), 1, 15).Draw(t, "sizes")
		for i, size := range sizes {
			if err := l.Append(wal.Batch{Entries: []wal.Entry{{Index: uint64(i + 1), Data: make([]byte, size)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.From, cfg.Keep = rapid.Uint64Range(0, 17).Draw(t, "from"), rapid.Int64Range(0, 5000).Draw(t, "keep")
		l, rec, err := wal.Open(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		first := len(sizes) + 1
		for room := cfg.Keep; first > 1 && (uint64(first-1) >= cfg.From || room >= int64(sizes[first-2])); first-- {
			if uint64(first-1) < cfg.From {
				room -= int64(sizes[first-2])
			}
		}
		if len(rec.Entries) != len(sizes)+1-first || l.FirstIndex() != uint64(first) || l.LastIndex() != uint64(len(sizes)) {
			t.Fatalf("%d entries from %d to %d, want those from %d", len(rec.Entries), l.FirstIndex(), l.LastIndex(), first)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
	mem := vfstest.NewMem()
	cfg := wal.Config{FS: mem}
	l, _ := mustOpen(t, cfg)
	const n, size = 3000, 10 << 10
	for i := range uint64(n) {
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: i + 1, Data: make([]byte, size)}}})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	live := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before, most, reads := live(), int64(0), 0
	cfg.From, cfg.Keep = n+1, 2<<20
	cfg.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRead {
			if reads++; reads%20 == 0 {
				most = max(most, live()-before)
			}
		}
		return nil
	})
	l, rec := mustOpen(t, cfg)
	if len(rec.Entries) != int(cfg.Keep)/size || most == 0 || most > 6<<20 {
		t.Errorf("%d entries are returned, and reading took %d bytes", len(rec.Entries), most)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// What precedes the damage comes with the error.
func TestRead_BeforeTheDamage(t *testing.T) {
	im := makeImage(t, false)
	mem := vfstest.NewMem()
	if err := mem.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	writeAll(t, mem, filepath.Join(dir, im.names[0]), im.files[im.names[0]])
	want, err := wal.Read(dir, wal.Config{FS: mem})
	if err != nil || len(want.Entries) == 0 || want.State == nil {
		t.Fatal(want, err)
	}
	for _, at := range []int{10, 200} { // in the header, and in the first frame
		damaged := slices.Clone(im.files[im.names[1]])
		damaged[at]++
		writeAll(t, mem, filepath.Join(dir, im.names[1]), damaged)
		writeAll(t, mem, filepath.Join(dir, im.names[2]), im.files[im.names[2]])
		got, err := wal.Read(dir, wal.Config{FS: mem})
		mustBeCorrupt(t, "damage in the second segment", im.names[1], err)
		n := len(want.Entries)
		if len(got.Entries) < n || !reflect.DeepEqual(got.Entries[:n], want.Entries) || len(got.Entries) > n+1 || got.State == nil {
			t.Errorf("byte %d is damaged: %d entries come before, and the first segment has %d", at, len(got.Entries), n)
		}
	}
	path := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(path, im.files[im.names[1]], 0o644); err != nil {
		t.Fatal(err)
	}
	before := openFiles()
	if rec, err := wal.ReadSegment(path); err != nil || len(rec.Entries) == 0 || openFiles() != before {
		t.Errorf("the second segment: %d entries, %v, %d files are open, %d were", len(rec.Entries), err, openFiles(), before)
	}
	if err := os.WriteFile(path, im.files[im.names[0]][:63], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := wal.ReadSegment(path); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("half a header: %v", err)
	}
	if _, err := wal.ReadSegment(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// openFiles returns how many files are open, or 0 if the system does not tell.
func openFiles() int {
	files, _ := filepath.Glob("/proc/self/fd/*")
	return len(files)
}

// readOnlyFS is a disk that opens no file for writing.
type readOnlyFS struct{ vfs.FS }

func (readOnlyFS) OpenRW(string) (vfs.File, error) { return nil, fs.ErrPermission }

// Read reads a log that cannot be written. Whichever read fails, Open and Read return its error.
func TestRead_Errors(t *testing.T) {
	mem := vfstest.NewMem()
	l, _ := mustOpen(t, wal.Config{FS: mem})
	for i := range uint64(30) {
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: i + 1, Data: make([]byte, 20<<10)}}})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if rec, err := wal.Read(dir, wal.Config{FS: readOnlyFS{mem}}); err != nil || len(rec.Entries) != 30 {
		t.Errorf("%d entries, %v", len(rec.Entries), err)
	}
	name := filepath.Join(dir, "0000000000000001.wal")
	data := readAll(t, mem, name)
	data[len(data)-1] = 1 // an append was torn
	writeAll(t, mem, name, data)
	for what, open := range map[string]func(cfg wal.Config) error{
		"Read": func(cfg wal.Config) error { _, err := wal.Read(dir, cfg); return err },
		"Open": func(cfg wal.Config) error {
			l, _, err := wal.Open(dir, cfg)
			if err == nil {
				err = l.Close()
			}
			return err
		},
	} {
		for fail := 1; ; fail++ {
			w := watch(mem.Crash(func(n int) int { return n - 1 }), fail)
			err := open(wal.Config{FS: w})
			if w.open != 0 || w.ops >= fail && !errors.Is(err, errDisk) {
				t.Errorf("%s, %s fails: %v, %d files are open", what, w.failed, err, w.open)
			}
			if w.ops < fail {
				if err != nil || fail < 5 {
					t.Fatalf("%s: %d operations, %v", what, w.ops, err)
				}
				break // each operation has failed once
			}
		}
	}
}
