package wal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

var errDisk = errors.New("disk error")

// watchedFS counts the files that are open, and fails one of its operations, which may be a Close
// or a Size, too.
type watchedFS struct {
	vfs.FS    // calls op
	open      int
	ops, fail int // operations so far; the one that fails, 0: none
	failed    string
}

type watchedFile struct {
	vfs.File
	fs   *watchedFS
	path string
}

func watch(mem *vfstest.Mem, fail int) *watchedFS {
	w := &watchedFS{fail: fail}
	w.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error { return w.op(string(op.Kind), op.Path) })
	return w
}

func (w *watchedFS) op(kind, path string) error {
	if w.ops++; w.ops != w.fail {
		return nil
	}
	w.failed = kind + " of " + path
	return errDisk
}

func (w *watchedFS) opened(f vfs.File, path string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	w.open++
	return &watchedFile{f, w, path}, nil
}

func (w *watchedFS) Create(path string) (vfs.File, error) {
	f, err := w.FS.Create(path)
	return w.opened(f, path, err)
}

func (w *watchedFS) Open(path string) (vfs.File, error) {
	f, err := w.FS.Open(path)
	return w.opened(f, path, err)
}

func (w *watchedFS) OpenRW(path string) (vfs.File, error) {
	f, err := w.FS.OpenRW(path)
	return w.opened(f, path, err)
}

func (f *watchedFile) Size() (int64, error) {
	if err := f.fs.op("size", f.path); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *watchedFile) Close() error {
	f.fs.open--
	return errors.Join(f.fs.op("close", f.path), f.File.Close())
}

// lifetime reads and opens a log, fills a few segments, drops some, and closes the log.
func lifetime(cfg wal.Config) error {
	if _, err := wal.Read(dir, cfg); err != nil {
		return err
	}
	l, _, err := wal.Open(dir, cfg)
	if err != nil {
		return err
	}
	put := func() error {
		return l.Append(wal.Batch{State: []byte("state"), Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 1500))})
	}
	for range 5 {
		err = errors.Join(err, put())
	}
	err = errors.Join(err, l.Compact(l.LastIndex()-1))
	for range 5 {
		err = errors.Join(err, put())
	}
	return errors.Join(err, l.Close())
}

// Whatever operation on the disk fails, its error is returned, and no file and no lock stays.
func TestFault_NothingStaysOpen(t *testing.T) {
	for lives, noSync := range []bool{false, true, false} {
		for fail := 1; ; fail++ {
			mem := vfstest.NewMem()
			cfg := wal.Config{FS: mem, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1), NoSync: noSync}
			if err := mem.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			for range lives { // segments and spares to begin with
				if err := lifetime(cfg); err != nil {
					t.Fatal(err)
				}
			}
			writeAll(t, mem, filepath.Join(dir, "00000000000000ff.spare"), make([]byte, 10))
			w := watch(mem, fail)
			cfg.FS = w
			err := lifetime(cfg)
			if w.open != 0 {
				t.Errorf("no sync %v, %s fails: %d files stay open", noSync, w.failed, w.open)
			}
			if w.ops < fail {
				if err != nil {
					t.Fatal(err)
				}
				break // each operation has failed once
			}
			if !errors.Is(err, errDisk) {
				t.Errorf("no sync %v, operation %d, %s, fails, the result is %v", noSync, fail, w.failed, err)
			}
			cfg.FS = mem
			l, _ := mustOpen(t, cfg)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Close syncs what Append did not, unless an operation has failed, and so does an Open that fails.
func TestClose_Syncs(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		for _, fails := range []string{"", "append", "open"} {
			mem := vfstest.NewMem()
			syncs, fail := 0, vfstest.OpKind("")
			cfg := wal.Config{NoSync: noSync, FS: vfstest.NewFaulty(mem, func(op vfstest.Op) error {
				if op.Kind == vfstest.OpSync {
					syncs++
				}
				if op.Kind == fail {
					syncs = 0
					return errDisk
				}
				return nil
			})}
			l, _ := mustOpen(t, cfg)
			mustAppend(t, l, wal.Batch{State: []byte("s")})
			if fails == "append" {
				fail = vfstest.OpWrite
				if err := l.Append(wal.Batch{State: []byte("s")}); !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
			}
			syncs = 0
			for range 2 {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if fails == "open" {
				fail = vfstest.OpSyncDir
				if _, _, err := wal.Open(dir, cfg); !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
			}
			want := 0
			if noSync && fails == "" {
				want = 1
			}
			if syncs != want {
				t.Errorf("no sync %v, %q fails: Close syncs %d times, want %d", noSync, fails, syncs, want)
			}
		}
	}
}

// listed returns the names of the files of a log, without those of locks, and their total size.
func listed(t testing.TB, fs vfs.FS) (names []string, bytes int64) {
	t.Helper()
	names, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		bytes += int64(len(readAll(t, fs, filepath.Join(dir, name))))
	}
	return names, bytes
}

// Compact drops a segment as soon as all of its entries are compacted, keeps two files, and writes
// to the log only if the index is above the last one.
func TestCompact_Drops(t *testing.T) {
	mem := vfstest.NewMem()
	writes := 0
	cfg := wal.Config{SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1), FS: vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpWrite {
			writes++
		}
		return nil
	})}
	l, _ := mustOpen(t, cfg)
	for range 5 { // two entries in each segment
		mustAppend(t, l, wal.Batch{Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 1500))})
		mustAppend(t, l, wal.Batch{Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 1500))})
	}
	if err := l.Close(); err != nil { // the segments of an earlier process are dropped alike
		t.Fatal(err)
	}
	l, _ = mustOpen(t, cfg)
	writes = 0
	for _, tc := range []struct {
		index, first  uint64
		wals, spares  int
		writes, bytes int64
	}{
		{0, 1, 5, 0, 0, 5 * 4096}, {1, 2, 5, 0, 0, 5 * 4096}, {2, 3, 4, 1, 0, 5 * 4096}, {1, 3, 4, 1, 0, 5 * 4096}, {7, 8, 2, 2, 0, 4 * 4096},
		{10, 11, 1, 2, 0, 3 * 4096}, {12, 13, 1, 2, 1, 3 * 4096}, {11, 13, 1, 2, 1, 3 * 4096},
	} {
		if err := l.Compact(tc.index); err != nil {
			t.Fatal(err)
		}
		names, bytes := listed(t, mem)
		wals, spares := 0, 0
		for _, name := range names {
			switch filepath.Ext(name) {
			case ".wal":
				wals++
			case ".spare":
				spares++
			}
		}
		if l.FirstIndex() != tc.first || wals != tc.wals || spares != tc.spares || int64(writes) != tc.writes || bytes != tc.bytes {
			t.Errorf("after Compact(%d) the first is %d, %d bytes in %q, %d writes; want %+v", tc.index, l.FirstIndex(), bytes, names, writes, tc)
		}
	}
	if last := l.LastIndex(); last != 12 {
		t.Errorf("the last is %d", last)
	}
	for range 3 { // large segments, which are no spares
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: l.LastIndex() + 1, Data: make([]byte, 3*wal.MinSegmentBytes)}}})
	}
	for range 3 { // which use the spares
		mustAppend(t, l, wal.Batch{Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 4000))})
	}
	if err := l.Compact(l.LastIndex() - 3); err != nil {
		t.Fatal(err)
	}
	names, _ := listed(t, mem)
	for _, name := range names {
		if filepath.Ext(name) == ".spare" && len(readAll(t, mem, filepath.Join(dir, name))) > 2*wal.MinSegmentBytes {
			t.Errorf("%s is kept", name)
		}
	}
	writes = 1
	for _, nothing := range [][]wal.Batch{nil, {}, {{}, {}}, {{Entries: []wal.Entry{}}}} {
		if mustAppend(t, l, nothing...); writes != 1 {
			t.Errorf("an append of nothing writes: %d writes", writes)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Compact beyond the end empties the log and drops all other segments. Its first error is sticky,
// and a closed log refuses it.
func TestCompact_BeyondTheEnd(t *testing.T) {
	for _, kind := range []vfstest.OpKind{"", vfstest.OpWrite, vfstest.OpRename} {
		mem := vfstest.NewMem()
		var failing vfstest.OpKind
		l, _ := mustOpen(t, wal.Config{SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1), FS: vfstest.NewFaulty(mem, func(op vfstest.Op) error {
			if op.Kind == failing {
				return errDisk
			}
			return nil
		})})
		for range 3 {
			mustAppend(t, l, wal.Batch{Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 3000))})
		}
		failing = kind
		err := l.Compact(9)
		names, _ := listed(t, mem)
		if kind == "" && (err != nil || l.FirstIndex() != 10 || l.LastIndex() != 9 || len(names) != 3 || filepath.Ext(names[2]) != ".wal" || filepath.Ext(names[1]) != ".spare") {
			t.Errorf("entries %d to %d, files %q, %v", l.FirstIndex(), l.LastIndex(), names, err)
		}
		failing = ""
		if kind != "" && (!errors.Is(err, errDisk) || !errors.Is(l.Compact(9), errDisk) || !errors.Is(l.Append(wal.Batch{State: []byte("s")}), errDisk)) {
			t.Errorf("a %s fails: %v", kind, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Compact(10); !errors.Is(err, wal.ErrClosed) {
			t.Errorf("Compact of a closed log: %v", err)
		}
	}
}

// A segment takes appends until it is full, a larger append has a segment of its own, and the size
// of a file grows in steps.
func TestAppend_FillsSegments(t *testing.T) {
	const header, overhead = 64, 32 + 17
	for _, tc := range []struct {
		what  string
		sizes []int // of appends on disk
		want  []int // of files
	}{
		{"an append that just fits", []int{4096 - header, 56}, []int{4096, 4096}},
		{"two that just fit", []int{2016, 2016, 2016, 2016, 56}, []int{4096, 4096, 4096}},
		{"two that do not", []int{2016, 2024}, []int{4096, 4096}},
		{"a large one at first", []int{8000}, []int{8000 + header}},
		{"large ones", []int{56, 8000, 56, 8000, 8000}, []int{4096, 8000 + header, 4096, 8000 + header, 8000 + header}},
	} {
		mem := vfstest.NewMem()
		l, _ := mustOpen(t, wal.Config{FS: mem, SegmentBytes: wal.MinSegmentBytes})
		for _, size := range tc.sizes {
			mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: l.LastIndex() + 1, Data: make([]byte, size-overhead)}}})
		}
		names, _ := listed(t, mem)
		var got []int
		for _, name := range names {
			got = append(got, len(readAll(t, mem, filepath.Join(dir, name))))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: files of %d bytes, want %d", tc.what, got, tc.want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mem := vfstest.NewMem()
	l, _ := mustOpen(t, wal.Config{FS: mem, SegmentBytes: 10 << 20})
	for i, want := range []int64{1, 4, 4, 4, 4, 8, 8, 8, 8, 8, 10, 10} {
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: l.LastIndex() + 1, Data: make([]byte, 800<<10)}}})
		if _, bytes := listed(t, mem); bytes != want<<20 {
			t.Errorf("after %d appends of 800 KiB the file has %d bytes, want %d MiB", i+1, bytes, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A segment that is all that is left holds the newest state, or says that there was none.
func TestRoll_KeepsTheState(t *testing.T) {
	for _, state := range [][]byte{nil, {}, []byte("state")} {
		for _, reopen := range []bool{false, true} {
			cfg := wal.Config{FS: vfstest.NewMem(), SegmentBytes: wal.MinSegmentBytes}
			l, _ := mustOpen(t, cfg)
			mustAppend(t, l, wal.Batch{State: state, Entries: entries(1, 1, "x")})
			for range 3 {
				if reopen {
					if err := l.Close(); err != nil {
						t.Fatal(err)
					}
					l, _ = mustOpen(t, cfg)
				}
				mustAppend(t, l, wal.Batch{Entries: entries(l.LastIndex()+1, 1, strings.Repeat("x", 3000))})
				if err := l.Compact(l.LastIndex() - 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l, rec := mustOpen(t, cfg)
			if !reflect.DeepEqual(rec.State, state) || len(rec.Entries) != 1 {
				t.Errorf("reopened %v: state %#v, %d entries, want %#v", reopen, rec.State, len(rec.Entries), state)
			}
			if rec.TornBytes != 0 || rec.TornPath != "" || rec.TornOffset != 0 {
				t.Errorf("a log that was closed is torn: %d bytes at %d of %q", rec.TornBytes, rec.TornOffset, rec.TornPath)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Open keeps two files of an earlier process, if they are neither much smaller nor much larger than
// a segment.
func TestOpen_AdoptsSpares(t *testing.T) {
	for _, withLog := range []bool{false, true} {
		mem := vfstest.NewMem()
		cfg := wal.Config{FS: mem, SegmentBytes: wal.MinSegmentBytes}
		wantBytes, want := int64(2048+8192), []string{"0000000000000001.wal", "0000000000000002.spare"}
		if withLog {
			l, _ := mustOpen(t, cfg)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			wantBytes, want = wantBytes+4096, append(want, "0000000000000003.spare")
		} else if err := mem.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		for i, size := range []int{2047, 2048, 8192, 8193, 4096} {
			writeAll(t, mem, filepath.Join(dir, fmt.Sprintf("%016x.spare", i+1)), make([]byte, size))
		}
		l, _ := mustOpen(t, cfg)
		if names, bytes := listed(t, mem); !slices.Equal(names, want) || bytes != wantBytes {
			t.Errorf("log %v: %q have %d bytes; want %q with %d", withLog, names, bytes, want, wantBytes)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// All that Config leaves out has a default, and all sizes of segments that it may name are taken.
func TestOpen_Config(t *testing.T) {
	var salts [][]byte
	for range 2 {
		path := filepath.Join(t.TempDir(), "wal")
		l, _, err := wal.Open(path, wal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, wal.Batch{Entries: entries(1, 1, strings.Repeat("x", 5000))}, wal.Batch{Entries: entries(2, 1, "")})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(path, "*.wal"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil || len(data) != 1<<20 {
			t.Fatal(len(data), err)
		}
		salts = append(salts, data[24:32])
		other := filepath.Join(t.TempDir(), "a file of any name")
		if err := os.WriteFile(other, data, 0o644); err != nil {
			t.Fatal(err)
		}
		read, err := wal.Read(path, wal.Config{})
		one, errOne := wal.ReadSegment(other)
		if err != nil || errOne != nil || len(read.Entries) != 2 || !reflect.DeepEqual(one, read) {
			t.Errorf("%d entries are read, %d from the segment alone, %v, %v", len(read.Entries), len(one.Entries), err, errOne)
		}
	}
	if slices.Equal(salts[0], salts[1]) {
		t.Errorf("two logs have the salt %x", salts[0])
	}
	for _, size := range []int64{wal.MinSegmentBytes, wal.MaxSegmentBytes} {
		l, _ := mustOpen(t, wal.Config{FS: vfstest.NewMem(), SegmentBytes: size})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mem := vfstest.NewMem()
	if err := mem.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	writeAll(t, mem, filepath.Join(dir, "ffffffffffffffff.wal"), nil)
	if _, _, err := wal.Open("other", wal.Config{FS: mem, Rand: strings.NewReader("seven b")}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("no salt: %v", err)
	}
	if _, err := wal.Read(dir, wal.Config{FS: mem, SegmentBytes: 1}); err == nil || errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("a bad Config: %v", err)
	}
	if _, _, err := wal.Open(dir, wal.Config{FS: mem}); !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "no such file") {
		t.Errorf("a segment that can have no successor: %v", err)
	}
}

// OnSync is told how long an append took, unless it was not synced.
func TestOnSync_Took(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		calls := 0
		l, _ := mustOpen(t, wal.Config{FS: vfstest.NewMem(), NoSync: noSync, OnSync: func(took time.Duration, _, _ int) {
			if calls++; took < 0 || took > time.Hour {
				t.Errorf("an append took %v", took)
			}
		}})
		mustAppend(t, l, wal.Batch{State: []byte("s")})
		if (calls == 1) == noSync {
			t.Errorf("no sync %v: %d calls", noSync, calls)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
