package archive

import (
	"bytes"
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/consensus"
)

// entriesFrom returns n entries of term 5 with batches of no requests, a second apart.
func entriesFrom(t testing.TB, first uint64, n int) (list []consensus.LogEntry) {
	t.Helper()
	for i := range uint64(n) {
		ms := byte(1 + (first+i)%100)
		e, err := consensus.DecodeLogEntry(first+i, []byte{5, 0, 1, ms})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func sameEntries(a, b []consensus.LogEntry) bool {
	return slices.EqualFunc(a, b, func(a, b consensus.LogEntry) bool {
		return a.Index == b.Index && a.Term == b.Term && a.Time.Equal(b.Time) && bytes.Equal(a.Data, b.Data)
	})
}

const ensemble = 0xabc

// The bytes of the package comment. Archives of earlier versions must be read for ever: never
// change this object.
func TestObject_Golden(t *testing.T) {
	n, b := encodeLog(ensemble, position{7, firstChain(ensemble, 7, 5)}, entriesFrom(t, 8, 3))
	const name = "0000000000000abc/log/00000000000000000008-00000000000000000010-36d66ffc4ddf9a861952c0920224a8d5-c209422ee41c6bdb7429a72d2c312e3e-0000000000011"
	if got := n.in(ensemble); got != name {
		t.Errorf("the name is %s, want %s", got, name)
	}
	golden, err := hex.DecodeString(strings.Join([]string{
		"676f7a6b64415243", "01000000", "01000000", "bc0a000000000000", "0800000000000000", "0a00000000000000",
		"36d66ffc4ddf9a861952c0920224a8d5", "c209422ee41c6bdb7429a72d2c312e3e", "0f00000000000000", "365d0b29000f00f0ff0405000109040500010a040500010b010000ffff",
	}, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{golden, b} { // deflate may find other bytes for the same body
		got, err := decodeLog(ensemble, n, b)
		if err != nil || !sameEntries(got, entriesFrom(t, 8, 3)) {
			t.Error(got, err, hex.EncodeToString(b[headerSize-4:]))
		}
	}
}

// Names read back, and other names are nobody's.
func TestNames_ReadBack(t *testing.T) {
	n, _ := encodeLog(ensemble, position{7, Chain{1, 2}}, entriesFrom(t, 8, 3))
	if got, ok := parseLogName(path.Base(n.in(ensemble))); !ok || got != n {
		t.Errorf("%+v %v", got, ok)
	}
	b := baseName{position{9, Chain{3}}, 0x100000007, 1234567890123, "0badcafe"}
	if got, ok := parseBaseName(path.Base(b.in(ensemble))); !ok || got != b {
		t.Errorf("%+v %v", got, ok)
	}
	v := Verification{time.UnixMilli(1234567890123), 9, true}
	if got, ok := parseVerification(path.Base(v.in(ensemble))); !ok || got != v {
		t.Errorf("%+v %v", got, ok)
	}
	good := path.Base(n.in(ensemble))
	for _, s := range []string{
		"", "x", "1-2", strings.Replace(good, "8-", "11-", 1), good + "-1", good + "\n", " " + good, good[1:], strings.Replace(good, "-01", "-1", 1),
		strings.Replace(good, "8-0", "8-+", 1), strings.ReplaceAll(good, "00000000000000000010", "18446744073709551615"),
	} {
		if got, ok := parseLogName(s); ok || s == good {
			t.Errorf("%q is %+v", s, got)
		}
	}
	for _, s := range []string{"", "x", path.Base(b.in(ensemble)) + "-1 ", path.Base(b.in(ensemble))[1:], path.Base(v.in(ensemble))} {
		if got, ok := parseBaseName(s); ok {
			t.Errorf("%q is %+v", s, got)
		}
	}
	for _, s := range []string{"", "x", path.Base(v.in(ensemble)) + "x", path.Base(v.in(ensemble))[1:], good} {
		if got, ok := parseVerification(s); ok {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

// A1: no changed, missing or added byte stays unnoticed, and no object passes for another.
func TestObject_EveryByteCounts(t *testing.T) {
	entries := entriesFrom(t, 8, 40)
	n, b := encodeLog(ensemble, position{7, Chain{1}}, entries)
	base := baseName{position: position{9, Chain{3}}}
	part := partHeader(ensemble, base, 2).encode(bytes.Repeat([]byte("page"), 50))
	decode := map[string]func([]byte) error{
		"log":  func(b []byte) error { _, err := decodeLog(ensemble, n, b); return err },
		"base": func(b []byte) error { _, err := partHeader(ensemble, base, 2).decode(b); return err },
	}
	for kind, good := range map[string][]byte{"log": b, "base": part} {
		if err := decode[kind](good); err != nil {
			t.Fatal(err)
		}
		for i := range good {
			for bit := range 8 {
				bad := slices.Clone(good)
				bad[i] ^= 1 << bit
				if err := decode[kind](bad); err == nil {
					t.Errorf("%s: bit %d of byte %d", kind, bit, i)
				}
			}
			if err := decode[kind](good[:i]); err == nil {
				t.Errorf("%s: cut to %d bytes", kind, i)
			}
		}
		if err := decode[kind](append(slices.Clone(good), 0)); err == nil {
			t.Errorf("%s: with another byte", kind)
		}
	}
	for _, other := range []logName{
		{n.first + 1, n.last + 1, n.prev, n.chain, n.ms}, {n.first, n.last, n.prev, Chain{9}, n.ms}, {n.first, n.last, Chain{9}, n.chain, n.ms},
	} {
		if _, err := decodeLog(ensemble, other, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("as %+v: %v", other, err)
		}
	}
	if _, err := partHeader(ensemble, base, 3).decode(part); !errors.Is(err, ErrCorrupt) {
		t.Error("another piece of a base: ", err)
	}
}

func FuzzDecodeLog(f *testing.F) {
	n, b := encodeLog(ensemble, position{7, Chain{1}}, entriesFrom(f, 8, 3))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := decodeLog(ensemble, n, b)
		if err == nil && !sameEntries(entries, entriesFrom(t, 8, 3)) {
			t.Error("other entries under the same name")
		}
	})
}

// catalogOf lists objects.
func catalogOf(names ...string) *catalog {
	slices.Sort(names)
	var listed []store.Object
	for _, name := range names {
		listed = append(listed, store.Object{Name: name, Size: 100})
	}
	return newCatalog(ensemble, listed)
}

// A2, A4: a chain goes on where index and chain fit and nowhere else, also if two writers have cut
// the same entries differently.
func TestCatalog_Chains(t *testing.T) {
	all := entriesFrom(t, 1, 60)
	start := position{4, firstChain(ensemble, 4, 5)}
	at := func(index uint64) position { // on the history of all
		n, _ := encodeLog(ensemble, start, all[start.index:index])
		return n.after()
	}
	piece := func(from, to uint64) string {
		n, _ := encodeLog(ensemble, at(from), all[from:to])
		return n.in(ensemble)
	}
	baseAt := func(p position) string {
		return baseName{position: p, writer: "00000000"}.in(ensemble) + partName(0, true)
	}
	foreign, _ := encodeLog(ensemble, position{20, Chain{7}}, all[20:50])
	for _, c := range []struct {
		what  string
		names []string
		end   uint64
		steps int
	}{
		{"nothing follows", nil, 4, 0},
		{"pieces", []string{piece(5, 10), piece(10, 20)}, 4, 0},
		{"one after the other", []string{piece(4, 10), piece(10, 20), piece(20, 21)}, 21, 3},
		{"a gap", []string{piece(4, 10), piece(11, 20)}, 10, 1},
		{"another history", []string{piece(4, 10), piece(10, 20), foreign.in(ensemble)}, 20, 2},
		{"merged, and not deleted yet", []string{piece(4, 10), piece(10, 20), piece(4, 20), piece(20, 30)}, 30, 2},
		{"two writers", []string{piece(4, 10), piece(10, 20), piece(10, 15), piece(15, 25), piece(25, 30)}, 30, 4},
	} {
		got := catalogOf(append(c.names, baseAt(start))...)
		path := got.path(start)
		if end := endOf(start, path); end.index != c.end || len(path) != c.steps || end != at(c.end) && c.end > 4 {
			t.Errorf("%s: the chain ends at %d after %d objects", c.what, end.index, len(path))
		}
		for i, o := range path {
			if i > 0 && o.before() != path[i-1].after() {
				t.Errorf("%s: object %d does not follow", c.what, i)
			}
		}
	}
	strange := catalogOf("0000000000000abc/log/x", "0000000000000abc/README", baseAt(start)+"x")
	if len(strange.strange) != 3 || len(strange.whole()) != 0 {
		t.Errorf("%+v", strange)
	}
	half := baseName{position: start}.in(ensemble)
	if c := catalogOf(half+partName(0, false), half+partName(2, true)); len(c.whole()) != 0 {
		t.Error("a base without its second piece counts")
	}
}
