package wal_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

// FuzzOpen opens arbitrary bytes after a segment header that is right or wrong. Open must neither
// panic nor use more memory than the file justifies. A log that it accepts it must accept again,
// also after an append. With sum the checksum and chain of the first frame are made right, so that
// the fuzzer reaches the records inside.
func FuzzOpen(f *testing.F) {
	fs := vfstest.NewMem()
	cfg := wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(3)}
	l, _ := mustOpen(f, cfg)
	mustAppend(f, l, wal.Batch{State: []byte("state"), Entries: entries(1, 3, "data")})
	mustAppend(f, l, wal.Batch{Reset: 9, Entries: entries(10, 1, "data")})
	if err := l.Close(); err != nil {
		f.Fatal(err)
	}
	seed := readAll(f, fs, filepath.Join(dir, "0000000000000001.wal"))[:256]
	f.Add(seed, false)
	f.Add(seed, true)
	f.Add(seed[:64], false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if sum {
			data = repairSums(data)
		}
		fs := vfstest.NewMem()
		if err := fs.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		writeAll(t, fs, filepath.Join(dir, "0000000000000001.wal"), data)
		cfg := wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(4)}
		l, rec, err := wal.Open(dir, cfg)
		if err != nil {
			if !errors.Is(err, wal.ErrCorrupt) && !errors.Is(err, wal.ErrVersion) {
				t.Fatalf("got %v, want ErrCorrupt or ErrVersion", err)
			}
			if after := readAll(t, fs, filepath.Join(dir, "0000000000000001.wal")); string(after) != string(data) {
				t.Fatal("a log that was refused was changed")
			}
			return
		}
		m := newModel()
		m.state, m.first, m.oldest, m.last = rec.State, l.FirstIndex(), l.FirstIndex(), l.LastIndex()
		for _, e := range rec.Entries {
			m.entries[e.Index] = string(e.Data)
		}
		if m.last < 1<<63 {
			more := wal.Batch{Entries: entries(m.last+1, 1, "more")}
			mustAppend(t, l, more)
			m.append(more)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, rec = mustOpen(t, cfg)
		if err := m.check(l, rec); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// repairSums makes the checksums of the header and of the first frame right, if there is room for
// them.
func repairSums(data []byte) []byte {
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	data = append([]byte(nil), data...)
	if len(data) < 96 {
		return data
	}
	copy(data, "gozkdWAL\x01\x00\x00\x00")
	le.PutUint64(data[16:], 1)
	clear(data[52:60])
	le.PutUint32(data[60:], crc32.Checksum(data[:60], table))
	le.PutUint32(data[64:], 1)
	n := min(int(le.Uint32(data[68:])), len(data)-96)
	le.PutUint32(data[68:], uint32(n))
	for len(data) < 96+(n+7)/8*8 {
		data = append(data, 0)
	}
	copy(data[72:80], data[24:32])
	copy(data[80:88], data[32:40])
	copy(data[88:92], data[60:64])
	crc := crc32.Update(crc32.Checksum(data[64:92], table), table, data[96:96+(n+7)/8*8])
	le.PutUint32(data[92:], crc)
	return data
}
