package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/vfs"
)

// walk reads all pages in use.
func walk(p *pageReader) error {
	_, state, err := p.buckets()
	if err != nil {
		return err
	}
	if err := p.pairs(state, func([]byte, []byte) error { return nil }); err != nil {
		return err
	}
	_, _, err = p.readFreelist()
	return err
}

// Damage that makes bbolt loop without end, allocate without bound, fault, or read an older state
// is an error here.
func TestCheckPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	for round := range uint64(15) {
		d := make(delta)
		for i := range 40 {
			d[fmt.Sprint(round, i)] = strings.Repeat("x", 1000)
		}
		if err := Merge(vfs.OS{}, path, mustBe(round-1), testMeta(round), d.Range); err != nil {
			t.Fatal(err)
		}
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := readAll(path, NewestOfTwo); err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	kind := func(id int) uint16 { return binary.NativeEndian.Uint16(good[id*page+8:]) }
	newest := 0
	if word(good[page+pageHeader+48:]) > word(good[pageHeader+48:]) {
		newest = 1
	}
	meta := good[newest*page+pageHeader:]
	freelist := int(word(meta[32:]))
	// The root of the state in the newest transaction: the only branch.
	branch := -1
	for id := 2; id < int(word(meta[40:])); id++ {
		if kind(id) == flagBranch && word(good[id*page:]) == uint64(id) {
			wrong := slices.Clone(good)
			wrong[id*page+8] = 0
			if p := filepath.Join(t.TempDir(), "f"); os.WriteFile(p, wrong, 0o600) == nil && readAll(p, NewestOfTwo) != nil {
				branch = id // in use
			}
		}
	}
	if branch < 0 {
		t.Fatal("no branch in use: the state is too small for this test")
	}
	child := int(word(good[branch*page+pageHeader+8:]))
	put32 := binary.NativeEndian.PutUint32
	for name, damage := range map[string]func(b []byte) []byte{
		"a branch that is its own child": func(b []byte) []byte {
			binary.NativeEndian.PutUint64(b[branch*page+pageHeader+8:], uint64(branch))
			return b
		},
		"two with the same child": func(b []byte) []byte {
			copy(b[branch*page+pageHeader+pageElement+8:], b[branch*page+pageHeader+8:][:8])
			return b
		},
		"a child that is not there":      func(b []byte) []byte { b[branch*page+pageHeader+8+5] ^= 1; return b },
		"a branch key out of its page":   func(b []byte) []byte { put32(b[branch*page+pageHeader+4:], 1<<31); return b },
		"a leaf with too many pages":     func(b []byte) []byte { put32(b[child*page+12:], 1<<29); return b },
		"a leaf with too many elements":  func(b []byte) []byte { b[child*page+11] = 0x7f; return b },
		"a leaf's value out of its page": func(b []byte) []byte { put32(b[child*page+pageHeader+12:], 1<<30); return b },
		"a leaf's keys out of order": func(b []byte) []byte {
			at := child*page + pageHeader
			copy(b[at+4:at+12], b[at+pageElement+4:])
			return b
		},
		"a bucket in a bucket":             func(b []byte) []byte { put32(b[child*page+pageHeader:], elementBucket); return b },
		"a list of free pages with others": func(b []byte) []byte { copy(b[freelist*page+pageHeader:], b[branch*page:][:8]); return b },
		"a list of free pages too long":    func(b []byte) []byte { b[freelist*page+11] = 0x7f; return b },
		"no list of free pages":            func(b []byte) []byte { b[freelist*page+8] = flagLeaf; return b },
		"the newest meta":                  func(b []byte) []byte { b[newest*page+pageHeader+20] ^= 1; return b },
		"pages cut off":                    func(b []byte) []byte { return b[:len(b)/2] },
	} {
		path := filepath.Join(t.TempDir(), "wrong.db")
		if err := os.WriteFile(path, damage(slices.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(path, NewestOfTwo); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := readAll(path, Newest); (err == nil) != (name == "the newest meta") {
			t.Errorf("%s, not strict: %v", name, err)
		}
	}
}

// The header of a meta page has no checksum, and bbolt does not look at it: to bbolt the page still
// counts. A tool must read the transaction that a start reads.
func TestSaved_HeaderOfAMetaPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	for index := range uint64(3) {
		d := delta{fmt.Sprint(index): "value"}
		if err := Merge(vfs.OS{}, path, mustBe(index-1), testMeta(index), d.Range); err != nil {
			t.Fatal(err)
		}
	}
	good := readFile(t, path)
	size := os.Getpagesize()
	for page := range 2 {
		for at := range pageHeader - 4 { // the number of overflow pages means nothing
			bad := bytes.Clone(good)
			bad[page*size+at] ^= 0x40
			writeFile(t, path, bad)
			alone, err := pairsOf(Open(vfs.OS{}, path, Newest))
			second, errSecond := pairsOf(Open(Saved{}, path, Newest))
			if err != nil || errSecond != nil || !maps.Equal(alone, second) {
				t.Errorf("byte %d of meta page %d: %v, %v; with bbolt %v, %v", at, page, alone, err, second, errSecond)
			}
		}
	}
}
