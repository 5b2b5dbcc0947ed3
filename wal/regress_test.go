package wal_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

// Found by TestCrash_AfterEveryOperation: the header of a torn frame lay across two sectors of a
// recycled file, and only the first sector was written. So the salt was that of the segment, and
// the sequence number was old data of the file. Open mistook this for a later frame, and the torn
// append for damage.
func TestRegress_HeadAcrossSectorsOfARecycledFile(t *testing.T) {
	mem := vfstest.NewMem()
	var crashed *vfstest.Mem
	crash := false
	fs := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if crash && op.Kind == vfstest.OpSync {
			questions := 0
			crashed = mem.Crash(func(int) int {
				questions++
				if questions == 1 {
					return 1 // the first sector survives, all others are lost
				}
				return 0
			})
		}
		return nil
	})
	l, _ := mustOpen(t, wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)})
	data := func(n int) []byte { return bytes.Repeat([]byte{0xee}, n) }
	m := newModel()
	put := func(n int) {
		b := wal.Batch{Entries: []wal.Entry{{Index: l.LastIndex() + 1, Data: data(n)}}}
		mustAppend(t, l, b)
		m.append(b)
	}
	// Three segments of one append each; the third reuses the file of the first.
	put(4000)
	put(4000)
	if err := l.Compact(1); err != nil {
		t.Fatal(err)
	}
	m.compact(1)
	put(496 - 64 - 32 - 17) // ends 16 bytes before the end of the first sector
	if b := readAll(t, mem, filepath.Join(dir, "0000000000000003.wal")); b[12] != 1 || !bytes.Equal(b[496:512], data(16)) {
		t.Fatal("the third segment is not the image that was meant")
	}
	acked := m.clone()
	crash = true
	put(100)
	if b := readAll(t, crashed, filepath.Join(dir, "0000000000000003.wal")); !bytes.Equal(b[504:512], b[24:32]) || !bytes.Equal(b[512:520], data(8)) {
		t.Fatal("the torn append is not the one that was meant")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, rec := mustOpen(t, wal.Config{FS: crashed})
	if err := acked.check(l, rec); err != nil {
		t.Error(err)
	}
	if rec.TornBytes == 0 || rec.TornOffset != 496 {
		t.Errorf("%d torn bytes at %d, want some at 496", rec.TornBytes, rec.TornOffset)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, rec = mustOpen(t, wal.Config{FS: crashed})
	if rec.TornBytes != 0 {
		t.Errorf("the torn append is found again: %d bytes", rec.TornBytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Found by the simulator of package consensus: a crash while segment 3 was made left its file under
// the name of a spare. After the restart another spare became segment 3. When that segment was
// dropped, its file replaced the first spare, and was counted as a second one.
func TestRegress_SpareOfASegmentThatWasMadeOfAnother(t *testing.T) {
	mem := vfstest.NewMem()
	var crashed *vfstest.Mem
	crash := false
	fs := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if crash && op.Kind == vfstest.OpSyncDir {
			changes := 0
			crashed = mem.Crash(func(n int) int {
				if changes++; changes == 2 {
					return 0 // the file was made, but not renamed
				}
				return n - 1
			})
		}
		return nil
	})
	cfg := wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)}
	l, _ := mustOpen(t, cfg)
	put := func() { // one append fills a segment
		t.Helper()
		mustAppend(t, l, wal.Batch{Entries: []wal.Entry{{Index: l.LastIndex() + 1, Data: make([]byte, 4000)}}})
	}
	put()
	put()
	crash = true
	put()
	cfg.FS = crashed
	l, _ = mustOpen(t, cfg)
	if names, err := crashed.ReadDir(dir); err != nil || fmt.Sprint(names) != "[0000000000000001.wal 0000000000000002.wal 0000000000000003.spare]" {
		t.Fatal("the crash is not the one that was meant:", names, err)
	}
	for index := uint64(1); index < 10; index++ { // spares are made, used, and made again
		if err := l.Compact(index); err != nil {
			t.Fatal(err)
		}
		put()
	}
	put() // all spares
	put()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
