package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

// image is a small log as bytes, with the facts that the tests of damage need.
type image struct {
	names []string
	files map[string][]byte
	whole *model
	// Of the last segment: where the last frame begins and ends, and the content of the log without
	// it.
	lastFrame, end int
	short          *model
}

// makeImage writes a log of several segments with a state and a last segment of a few appends. With
// recycled the last segment is a reused file.
func makeImage(t *testing.T, recycled bool) *image {
	t.Helper()
	fs := vfstest.NewMem()
	cfg := wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(7)}
	l, _ := mustOpen(t, cfg)
	im := &image{files: map[string][]byte{}, whole: newModel()}
	put := func(b wal.Batch) {
		im.short = im.whole.clone()
		mustAppend(t, l, b)
		im.whole.append(b)
	}
	segments := func() (names []string) {
		all, err := fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(s string) bool { return !strings.HasSuffix(s, ".wal") })
	}
	put(wal.Batch{State: []byte("state")})
	goal := 3
	for len(segments()) < goal {
		put(wal.Batch{Entries: entries(im.whole.last+1, 1, strings.Repeat("x", 700))})
		if recycled && goal == 3 && len(segments()) == 3 {
			// The first two segments become spares; the third, fourth and fifth are the log.
			if err := l.Compact(im.whole.last - 1); err != nil {
				t.Fatal(err)
			}
			im.whole.compact(im.whole.last - 1)
			im.whole.oldest = im.whole.last - 1
			goal = 2
		}
	}
	put(wal.Batch{Entries: entries(im.whole.last+1, 2, "y")})
	put(wal.Batch{State: []byte("newer"), Entries: entries(im.whole.last+1, 1, "z")})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	im.names = segments()
	for _, name := range im.names {
		im.files[name] = readAll(t, fs, filepath.Join(dir, name))
	}
	im.findLastFrame(t)
	return im
}

// findLastFrame walks the frames of the last segment by their lengths, as described in
// docs/reference/formats.md.
func (im *image) findLastFrame(t *testing.T) {
	t.Helper()
	data := im.files[im.names[len(im.names)-1]]
	for off := 64; data[off] == 1 && binary.LittleEndian.Uint64(data[off+8:]) == binary.LittleEndian.Uint64(data[24:]); {
		im.lastFrame = off
		off += 32 + (int(binary.LittleEndian.Uint32(data[off+4:]))+7)/8*8
		im.end = off
	}
	if im.lastFrame == 64 || im.end-im.lastFrame > 200 {
		t.Fatalf("the last frame is at %d to %d: not the image that was meant", im.lastFrame, im.end)
	}
}

// open recovers from a copy of the image in which one file is replaced, or removed if data is nil.
func (im *image) open(t *testing.T, name string, data []byte) (*wal.Log, wal.Recovered, error) {
	t.Helper()
	fs := vfstest.NewMem()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, n := range im.names {
		switch {
		case n != name:
			writeAll(t, fs, filepath.Join(dir, n), im.files[n])
		case data != nil:
			writeAll(t, fs, filepath.Join(dir, n), data)
		}
	}
	return readThenOpen(wal.Config{FS: fs, SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(8)})
}

func (im *image) mustRecover(t *testing.T, what string, m *model, l *wal.Log, rec wal.Recovered, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := m.check(l, rec); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustBeCorrupt(t *testing.T, what, path string, err error) {
	t.Helper()
	var corrupt *wal.CorruptError
	if !errors.As(err, &corrupt) || !errors.Is(err, wal.ErrCorrupt) {
		t.Fatalf("%s: got %v, want a CorruptError", what, err)
	}
	if filepath.Base(corrupt.Path) != path || corrupt.Want == "" || corrupt.Got == "" {
		t.Fatalf("%s: the error is %v, want one about %s", what, err, path)
	}
}

// The promise of docs/internals/consensus.md for every byte: damage before the last frame of the
// last segment makes Open fail, damage in the last frame cuts that frame off, and damage after it
// changes nothing.
func TestDamage_EveryByteFlipped(t *testing.T) {
	for _, recycled := range []bool{false, true} {
		im := makeImage(t, recycled)
		for i, name := range im.names {
			data := slices.Clone(im.files[name])
			for off := range data {
				if !exhaustive.Enabled() && off%29 != 0 && off >= 160 && (off < im.lastFrame-16 || off > im.end+16) {
					continue
				}
				for _, flip := range []byte{0x01, 0x80, data[off]} { // the last value makes the byte zero
					if flip == 0 {
						continue
					}
					data[off] ^= flip
					what := fmt.Sprintf("byte %d of %s flipped by %#x", off, name, flip)
					l, rec, err := im.open(t, name, data)
					sealed := i < len(im.names)-1
					switch {
					case sealed && off >= sealedEnd(im.files[name]), !sealed && off >= im.end:
						im.mustRecover(t, what, im.whole, l, rec, err)
					case sealed || off < im.lastFrame:
						mustBeCorrupt(t, what, name, err)
					default:
						im.mustRecover(t, what, im.short, l, rec, err)
						// In a recycled file a torn append is reported only if the header of its
						// frame is present.
						if rec.TornBytes == 0 && !recycled {
							t.Fatalf("byte %d of %s: an append was cut without a word", off, name)
						}
					}
					data[off] ^= flip
				}
			}
		}
	}
}

// sealedEnd returns the offset after the last frame of a sealed segment.
func sealedEnd(data []byte) int {
	off := 64
	for off+32 <= len(data) && data[off] == 1 && binary.LittleEndian.Uint64(data[off+8:]) == binary.LittleEndian.Uint64(data[24:]) {
		off += 32 + (int(binary.LittleEndian.Uint32(data[off+4:]))+7)/8*8
	}
	return off
}

// A lost sector, which is zero or holds old data of a reused file, is found unless it only affects
// the last append.
func TestDamage_EverySectorZeroed(t *testing.T) {
	im := makeImage(t, false)
	for i, name := range im.names {
		sealed := i < len(im.names)-1
		for off := 0; off < len(im.files[name]); off += 512 {
			data := slices.Clone(im.files[name])
			clear(data[off:min(off+512, len(data))])
			l, rec, err := im.open(t, name, data)
			end := im.end
			if sealed {
				end = sealedEnd(data)
				if off < sealedEnd(im.files[name]) {
					end = len(data)
				}
			}
			switch {
			case off >= end:
				im.mustRecover(t, name, im.whole, l, rec, err)
			case sealed || off+512 <= im.lastFrame:
				mustBeCorrupt(t, name, name, err)
			}
		}
	}
}

// A sealed segment must be whole. The last segment may end early: without a trace of later frames,
// it looks like a shorter log.
func TestDamage_EveryTruncation(t *testing.T) {
	im := makeImage(t, false)
	for i, name := range im.names {
		for size := 0; size < len(im.files[name]); size += 8 {
			if !exhaustive.Enabled() && size%88 != 0 && size > 160 && (size < im.lastFrame-64 || size > im.end+64) {
				continue
			}
			l, rec, err := im.open(t, name, im.files[name][:size:size])
			switch sealed := i < len(im.names)-1; {
			case size < 64, sealed && size < sealedEnd(im.files[name]):
				mustBeCorrupt(t, name, name, err)
			case sealed, size >= im.end:
				im.mustRecover(t, name, im.whole, l, rec, err)
			case size >= im.lastFrame:
				im.mustRecover(t, name, im.short, l, rec, err)
			default:
				if err != nil {
					t.Fatalf("%s cut to %d bytes: %v", name, size, err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The remains of a torn append are overwritten with zeros, so that no later recovery can combine
// them with newer pieces.
func TestOpen_CutsATornAppend(t *testing.T) {
	fs := vfstest.NewMem()
	cfg := wal.Config{FS: fs}
	l, _ := mustOpen(t, cfg)
	m := newModel()
	mustAppend(t, l, wal.Batch{State: []byte("acknowledged")})
	m.append(wal.Batch{State: []byte("acknowledged")})
	mustAppend(t, l, wal.Batch{State: bytes.Repeat([]byte("torn"), 1000)})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "0000000000000001.wal")
	data := readAll(t, fs, path)
	const end = 64 + 32 + 24
	clear(data[2048:2560])
	writeAll(t, fs, path, data)

	var logged bytes.Buffer
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &logged})
	l, rec := mustOpen(t, cfg)
	if err := m.check(l, rec); err != nil {
		t.Error(err)
	}
	if rec.TornBytes != 32+4008 || rec.TornOffset != end || rec.TornPath != path {
		t.Errorf("got %d torn bytes at %d of %s", rec.TornBytes, rec.TornOffset, rec.TornPath)
	}
	if s := logged.String(); !strings.Contains(s, "cut off a torn append") || !strings.Contains(s, path) || !strings.Contains(s, "offset=120") {
		t.Errorf("logged %q", s)
	}
	if rest := readAll(t, fs, path)[end:]; bytes.Count(rest, []byte{0}) != len(rest) {
		t.Error("pieces of the torn append are still there")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	logged.Reset()
	l, _ = mustOpen(t, cfg)
	if logged.Len() > 0 {
		t.Errorf("logged about a whole log: %q", logged.String())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamage_SegmentMissing(t *testing.T) {
	im := makeImage(t, false)
	_, _, err := im.open(t, im.names[1], nil)
	mustBeCorrupt(t, "second of three segments removed", im.names[1], err)
}

func TestDamage_SegmentOfAnotherLog(t *testing.T) {
	im := makeImage(t, false)
	other := makeImage(t, true)
	// The same number in the name and in the header, but another chain.
	name := im.names[1]
	data := slices.Clone(other.files[other.names[0]])
	binary.LittleEndian.PutUint64(data[16:], 2)
	binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], crc32.MakeTable(crc32.Castagnoli)))
	if _, _, err := im.open(t, name, data); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if _, _, err := im.open(t, name, im.files[im.names[2]]); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("a copy of the next segment: got %v, want ErrCorrupt", err)
	}
}

func TestOpen_NewerVersionIsNotCorrupt(t *testing.T) {
	im := makeImage(t, false)
	name := im.names[0]
	data := slices.Clone(im.files[name])
	binary.LittleEndian.PutUint32(data[8:], 2)
	binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], crc32.MakeTable(crc32.Castagnoli)))
	_, _, err := im.open(t, name, data)
	if !errors.Is(err, wal.ErrVersion) || errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("got %v, want ErrVersion", err)
	}
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("%v does not name the file and the version", err)
	}
}
