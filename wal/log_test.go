package wal_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

func TestLog_RecoversWhatWasAppended(t *testing.T) {
	fs := vfstest.NewMem()
	cfg := wal.Config{FS: fs}
	l, rec := mustOpen(t, cfg)
	m := newModel()
	if err := m.check(l, rec); err != nil {
		t.Fatalf("empty log: %v", err)
	}
	steps := [][]wal.Batch{
		{{State: []byte("one")}},
		{{Entries: entries(1, 3, "a")}, {State: []byte("two"), Entries: entries(4, 2, "b")}},
		{{Entries: entries(3, 1, "overwritten")}},
		{{State: []byte{}}},
		{{Entries: []wal.Entry{{Index: 4}}}},
		{{Reset: 100, Entries: entries(101, 2, "behind a snapshot")}},
		{{State: []byte("three"), Reset: 50}},
		{{Entries: entries(51, 1, "c")}},
	}
	for i, batches := range steps {
		mustAppend(t, l, batches...)
		m.append(batches...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, rec = mustOpen(t, cfg)
		if err := m.check(l, rec); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if rec.TornBytes != 0 {
			t.Fatalf("step %d: %d torn bytes in a log that was closed", i, rec.TornBytes)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// sumOf returns batches whose records have n bytes in all.
func sumOf(n int) (batches []wal.Batch) {
	const recordHeaderBytes = 5 // before a State
	large := make([]byte, 64<<20)
	for n > len(large) {
		batches = append(batches, wal.Batch{State: large[recordHeaderBytes:]})
		n -= len(large)
	}
	return append(batches, wal.Batch{State: large[:n-recordHeaderBytes]})
}

const frameHeaderBytes = 32

// The largest append comes as far as the disk, which has no room for it.
func TestAppend_Largest(t *testing.T) {
	full, noRoom := false, errors.New("no room")
	l, _ := mustOpen(t, wal.Config{FS: vfstest.NewFaulty(vfstest.NewMem(), func(vfstest.Op) error {
		if full {
			return noRoom
		}
		return nil
	})})
	full = true
	if err := l.Append(sumOf(wal.MaxAppendBytes - frameHeaderBytes)...); !errors.Is(err, noRoom) {
		t.Errorf("got %v, want that there is no room", err)
	}
	full = false
	if err := l.Close(); err != nil && !errors.Is(err, noRoom) {
		t.Error(err)
	}
}

func TestAppend_RefusesWithoutWriting(t *testing.T) {
	fs := vfstest.NewMem()
	cfg := wal.Config{FS: fs}
	l, _ := mustOpen(t, cfg)
	m := newModel()
	mustAppend(t, l, wal.Batch{Entries: entries(1, 10, "a")})
	m.append(wal.Batch{Entries: entries(1, 10, "a")})
	if err := l.Compact(4); err != nil {
		t.Fatal(err)
	}
	m.compact(4)
	for name, batches := range map[string][]wal.Batch{
		"gap":            {{Entries: entries(12, 1, "x")}},
		"compacted":      {{Entries: entries(4, 1, "x")}},
		"not contiguous": {{Entries: []wal.Entry{{Index: 11}, {Index: 13}}}},
		"before reset":   {{Reset: 20, Entries: entries(20, 1, "x")}},
		"second is bad":  {{Entries: entries(11, 1, "x")}, {Entries: entries(13, 1, "x")}},
	} {
		if err := l.Append(batches...); !errors.Is(err, wal.ErrOrder) {
			t.Errorf("%s: got %v, want ErrOrder", name, err)
		}
	}
	// Many references to one slice exceed the size of an append, without the memory.
	if err := l.Append(sumOf(wal.MaxAppendBytes - frameHeaderBytes + 1)...); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	mustAppend(t, l)
	mustAppend(t, l, wal.Batch{})
	mustAppend(t, l, wal.Batch{Entries: entries(11, 1, "b")})
	m.append(wal.Batch{Entries: entries(11, 1, "b")})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{l.Append(wal.Batch{State: []byte("late")}), l.InPlace()} {
		if !errors.Is(err, wal.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	l, rec := mustOpen(t, cfg)
	if err := m.check(l, rec); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCompact_BoundsTheDiskAndRecycles(t *testing.T) {
	fs := vfstest.NewMem()
	created := 0
	counting := vfstest.NewFaulty(fs, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpCreate {
			created++
		}
		return nil
	})
	cfg := wal.Config{FS: counting, SegmentBytes: 8 << 10}
	l, _ := mustOpen(t, cfg)
	m := newModel()
	mustAppend(t, l, wal.Batch{State: []byte("kept")})
	m.append(wal.Batch{State: []byte("kept")})
	for i := range uint64(2000) {
		b := wal.Batch{Entries: entries(i+1, 1, strings.Repeat("x", 100))}
		mustAppend(t, l, b)
		m.append(b)
		if i%100 == 99 {
			if err := l.Compact(i - 20); err != nil {
				t.Fatal(err)
			}
			m.compact(i - 20)
		}
	}
	names, onDisk := listed(t, fs)
	if limit := int64(8 * 8 << 10); onDisk > limit {
		t.Errorf("the log takes %d bytes, want at most %d", onDisk, limit)
	}
	if created > 8 {
		t.Errorf("%d files were made, want the old ones used again", created)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m.oldest = 1900 - 200 // compacted entries that are recovered fill less than a few segments
	l, rec := mustOpen(t, cfg)
	if err := m.check(l, rec); err != nil {
		t.Error(err)
	}
	if again, bytes := listed(t, fs); !slices.Equal(again, names) || bytes != onDisk {
		t.Errorf("after Open %q have %d bytes, before %q had %d", again, bytes, names, onDisk)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAppend_LargerThanASegment(t *testing.T) {
	cfg := wal.Config{FS: vfstest.NewMem(), SegmentBytes: wal.MinSegmentBytes}
	l, _ := mustOpen(t, cfg)
	m := newModel()
	for i, size := range []int{10, 100_000, 10, 6 << 20, 10} {
		b := wal.Batch{State: make([]byte, i), Entries: []wal.Entry{{Index: uint64(i + 1), Data: make([]byte, size)}}}
		mustAppend(t, l, b)
		m.append(b)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, rec := mustOpen(t, cfg)
	if err := m.check(l, rec); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_IsExclusive(t *testing.T) {
	cfg := wal.Config{FS: vfstest.NewMem()}
	l, _ := mustOpen(t, cfg)
	if _, _, err := wal.Open(dir, cfg); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, _ = mustOpen(t, cfg)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_RefusesABadConfig(t *testing.T) {
	for _, n := range []int64{-1, 1, wal.MinSegmentBytes - 1, wal.MaxSegmentBytes + 1} {
		if _, _, err := wal.Open(dir, wal.Config{FS: vfstest.NewMem(), SegmentBytes: n}); err == nil {
			t.Errorf("SegmentBytes %d was accepted", n)
		}
	}
}

func TestOnSync_CountsBatchesAndBytes(t *testing.T) {
	var batches, bytes int
	cfg := wal.Config{FS: vfstest.NewMem(), OnSync: func(_ time.Duration, n, size int) { batches += n; bytes += size }}
	l, _ := mustOpen(t, cfg)
	mustAppend(t, l, wal.Batch{State: []byte("123")}, wal.Batch{Entries: entries(1, 1, "a")})
	// 32 for the frame header, 5+3 for the state, 13+4+2 for the entries, 5 for padding
	if batches != 2 || bytes != 64 {
		t.Errorf("got %d batches in %d bytes, want 2 in 64", batches, bytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Without syncs the death of the process loses nothing, Close makes everything durable, and a
// sealed segment is durable, so that a power loss can only damage the last segment.
func TestNoSync_SyncsOnlyAtRollAndClose(t *testing.T) {
	fs := vfstest.NewMem()
	var synced []string
	cfg := wal.Config{NoSync: true, SegmentBytes: wal.MinSegmentBytes, FS: vfstest.NewFaulty(fs, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			synced = append(synced, filepath.Base(op.Path))
		}
		return nil
	})}
	l, _ := mustOpen(t, cfg)
	m := newModel()
	put := func() {
		b := wal.Batch{Entries: entries(m.last+1, 1, strings.Repeat("x", 1500))}
		mustAppend(t, l, b)
		m.append(b)
	}
	put()
	put()
	sealed := m.clone()
	put() // rolls
	put()
	want := []string{"0000000000000001.spare", "0000000000000001.wal", "0000000000000002.spare"}
	if !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
	l2, rec := mustOpen(t, wal.Config{FS: fs.Crash(func(int) int { return 0 })})
	if err := sealed.check(l2, rec); err != nil {
		t.Errorf("after a power loss that took the last segment: %v", err)
	}
	if err := l2.Close(); err != nil {
		t.Fatal(err)
	}
	fs.Kill()
	l, rec = mustOpen(t, cfg)
	if err := m.check(l, rec); err != nil {
		t.Errorf("after the process was killed: %v", err)
	}
	put()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, rec = mustOpen(t, wal.Config{FS: fs.Crash(func(int) int { return 0 })})
	if err := m.check(l, rec); err != nil {
		t.Errorf("after Close and a power loss: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpen_KeepsInLinearTime: a start that keeps many small entries for others does not copy them
// again and again. The memory that it allocates shows how much was copied.
func TestOpen_KeepsInLinearTime(t *testing.T) {
	cfg := wal.Config{FS: vfstest.NewMem(), SegmentBytes: 64 << 20}
	l, _ := mustOpen(t, cfg)
	const steps = 8
	n := exhaustive.Or(20_000, 100_000)
	for i := range steps {
		mustAppend(t, l, wal.Batch{Entries: entries(uint64(1+i*n), n, "0123456789")})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	opened := func(from uint64) uint64 {
		cfg.From, cfg.Keep = from, 1<<40
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l, rec := mustOpen(t, cfg)
		runtime.ReadMemStats(&after)
		if err := l.Close(); err != nil || len(rec.Entries) != n*steps {
			t.Fatalf("%d entries, %v", len(rec.Entries), err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if all, kept := opened(0), opened(uint64(n*steps+1)); kept > 2*all {
		t.Errorf("%d bytes were allocated to read %d entries, and %d to keep them", all, n*steps, kept)
	}
}

// TestLog_InPlace checks that an open log notices that the next Open would not find its appends,
// also in a segment that it has begun meanwhile.
func TestLog_InPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(mem *vfstest.Mem, newest string) error
		want error
	}{
		"nothing":            {func(*vfstest.Mem, string) error { return nil }, nil},
		"directory removed":  {func(m *vfstest.Mem, _ string) error { m.RemoveAll(dir); return nil }, fs.ErrNotExist},
		"directory replaced": {func(m *vfstest.Mem, _ string) error { m.Replace(dir); return nil }, vfs.ErrReplaced},
		"segment removed":    {func(m *vfstest.Mem, newest string) error { return m.Remove(newest) }, fs.ErrNotExist},
	} {
		mem := vfstest.NewMem()
		l, _ := mustOpen(t, wal.Config{FS: mem, SegmentBytes: wal.MinSegmentBytes})
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: 1, Data: make([]byte, wal.MinSegmentBytes)}}})
		mustAppend(t, l, wal.Batch{Entries: entries(2, 1, name)})
		names, err := mem.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.do(mem, filepath.Join(dir, names[len(names)-1])); err != nil {
			t.Fatal(err)
		}
		if err := l.InPlace(); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpen_DropsInLinearTime: a start that keeps a part of many small appends does not copy that
// part after each of them.
func TestOpen_DropsInLinearTime(t *testing.T) {
	cfg := wal.Config{FS: vfstest.NewMem(), SegmentBytes: 64 << 20}
	l, _ := mustOpen(t, cfg)
	const n = 20_000
	for i := range uint64(n) {
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: i + 1, Data: make([]byte, 90)}}})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.From, cfg.Keep = n+1, 500_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, rec := mustOpen(t, cfg)
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; len(rec.Entries) != 500_000/90 || bytes > 20<<20 {
		t.Errorf("%d bytes were allocated to keep %d entries", bytes, len(rec.Entries))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
