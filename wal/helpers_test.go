package wal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

const dir = "data"

// saltSource is a seeded source of salts.
func saltSource(seed uint64) io.Reader { return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}) }

func mustOpen(t testing.TB, cfg wal.Config) (*wal.Log, wal.Recovered) {
	t.Helper()
	l, rec, err := wal.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l, rec
}

func mustAppend(t testing.TB, l *wal.Log, batches ...wal.Batch) {
	t.Helper()
	if err := l.Append(batches...); err != nil {
		t.Fatal(err)
	}
}

// entries makes n entries from index first, whose contents name the index and tag.
func entries(first uint64, n int, tag string) []wal.Entry {
	es := make([]wal.Entry, n)
	for i := range es {
		index := first + uint64(i)
		es[i] = wal.Entry{Index: index, Data: binary.AppendUvarint([]byte(tag), index)}
	}
	return es
}

// model is an independent implementation of a log: a map and two bounds.
type model struct {
	state   []byte // nil if none
	first   uint64 // lowest index not compacted
	last    uint64
	entries map[uint64]string // from oldest on, including compacted entries
	oldest  uint64            // lowest index that may be recovered
}

func newModel() *model { return &model{first: 1, oldest: 1, entries: map[uint64]string{}} }

func (m *model) clone() *model {
	c := *m
	c.entries = maps.Clone(m.entries)
	return &c
}

func (m *model) append(batches ...wal.Batch) {
	for _, b := range batches {
		if b.State != nil {
			m.state = b.State
		}
		if b.Reset != 0 {
			m.entries = map[uint64]string{}
			m.first, m.last, m.oldest = b.Reset+1, b.Reset, b.Reset+1
		}
		for i, e := range b.Entries {
			if i == 0 {
				for index := e.Index; index <= m.last; index++ {
					delete(m.entries, index)
				}
			}
			m.entries[e.Index] = string(e.Data)
			m.last = e.Index
		}
	}
}

func (m *model) compact(index uint64) {
	if index > m.last {
		m.append(wal.Batch{Reset: index})
	}
	m.first = max(m.first, index+1)
}

// check compares the model with a log that was just opened.
func (m *model) check(l *wal.Log, rec wal.Recovered) error {
	if !bytes.Equal(rec.State, m.state) || (rec.State == nil) != (m.state == nil) {
		return fmt.Errorf("state is %q, want %q", rec.State, m.state)
	}
	if l.LastIndex() != m.last {
		return fmt.Errorf("last index is %d, want %d", l.LastIndex(), m.last)
	}
	first := l.FirstIndex()
	if first > m.first || first < m.oldest {
		return fmt.Errorf("first index is %d, want %d to %d", first, m.oldest, m.first)
	}
	if got, want := uint64(len(rec.Entries)), m.last+1-first; got != want {
		return fmt.Errorf("%d entries from %d to %d", got, first, m.last)
	}
	for i, e := range rec.Entries {
		if e.Index != first+uint64(i) {
			return fmt.Errorf("entry %d has index %d, want %d", i, e.Index, first+uint64(i))
		}
		if string(e.Data) != m.entries[e.Index] {
			return fmt.Errorf("entry %d is %q, want %q", e.Index, e.Data, m.entries[e.Index])
		}
	}
	return nil
}

func readAll(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, size)
	if _, err := f.ReadAt(buf, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return buf
}

func writeAll(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
