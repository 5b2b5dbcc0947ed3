package datatree

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// wordList is a parsed line: words and name=value pairs.
type wordList struct {
	t   *testing.T
	pos []string
	opt map[string]string
}

func words(t *testing.T, line string) *wordList {
	t.Helper()
	w := &wordList{t: t, opt: make(map[string]string)}
	ids := false
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		end := strings.IndexByte(line, ' ')
		if q := strings.IndexByte(line, '"'); q >= 0 && (end < 0 || q < end) {
			quoted, err := strconv.QuotedPrefix(line[q:])
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			end = q + len(quoted)
			text, _ := strconv.Unquote(quoted)
			w.add(line[:q]+text, ids)
			line = line[end:]
			continue
		}
		if end < 0 {
			end = len(line)
		}
		ids = ids || line[:end] == "ids"
		w.add(line[:end], ids)
		line = line[end:]
	}
	return w
}

func (w *wordList) add(word string, ids bool) {
	if name, value, ok := strings.Cut(word, "="); ok && !ids && !strings.HasPrefix(word, "/") {
		w.opt[name] = value
		return
	}
	w.pos = append(w.pos, word)
}

func (w *wordList) shift() *wordList { return &wordList{w.t, w.pos[1:], w.opt} }

func (w *wordList) atoi(s string) int64 {
	w.t.Helper()
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *wordList) num(name string, other int64) int64 {
	w.t.Helper()
	if s, ok := w.opt[name]; ok {
		return w.atoi(s)
	}
	return other
}

func (w *wordList) str(name, other string) string {
	if s, ok := w.opt[name]; ok {
		return s
	}
	return other
}

// null returns nil for a missing option.
func (w *wordList) null(name string) *string {
	if s, ok := w.opt[name]; ok {
		return &s
	}
	return nil
}

func (w *wordList) acl() []proto.ACL {
	w.t.Helper()
	text, ok := w.opt["acl"]
	switch {
	case !ok:
		return proto.OpenACL()
	case text == "null":
		return nil
	case text == "":
		return []proto.ACL{}
	}
	var list []proto.ACL
	for _, entry := range strings.Split(text, "+") {
		parts := strings.SplitN(entry, ",", 3)
		list = append(list, proto.ACL{Perms: proto.Perms(w.atoi(parts[0])), ID: proto.ID{Scheme: parts[1], ID: parts[2]}})
	}
	return list
}

// op parses an operation of a multi.
func (w *wordList) op() proto.MultiOp {
	w.t.Helper()
	ops := map[string]proto.OpCode{
		"create": proto.OpCreate, "create2": proto.OpCreate2, "container": proto.OpCreateContainer, "ttl": proto.OpCreateTTL,
		"delete": proto.OpDelete, "check": proto.OpCheck, "set": proto.OpSetData, "get": proto.OpGetData,
	}
	m := proto.MultiOp{Op: ops[w.pos[0]], Path: w.pos[1], Version: int32(w.num("v", -1))}
	if m.Op == 0 {
		w.t.Fatalf("unknown op %v", w.pos)
	}
	m.Mode, m.TTL, m.ACL = proto.CreateMode(w.num("mode", 0)), w.num("ttl", -1), w.acl()
	if data, ok := w.opt["data"]; ok {
		m.Data = []byte(data)
	}
	return m
}

// store is the content of a checkpoint file.
type store map[string][]byte

func (s store) merge(t testing.TB, c *Changes) {
	t.Helper()
	n, last := 0, ""
	err := c.Range(func(key, value []byte) error {
		if n++; string(key) <= last {
			t.Fatalf("key %q after %q", key, last)
		}
		last = string(key)
		if value == nil {
			delete(s, last)
		} else {
			s[last] = value
		}
		return nil
	})
	if err != nil || n != c.Len() {
		t.Fatalf("Range: %d keys of %d, %v", n, c.Len(), err)
	}
}

func (s store) sorted(yield func(key, value []byte) bool) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		// NB: the copies are wiped to show whether Restore retains them.
		k, v := []byte(key), slices.Clone(s[key])
		if !yield(k, v) {
			return
		}
		clear(k)
		clear(v)
	}
}

func (s store) restore(t testing.TB) *Tree {
	t.Helper()
	tree, err := Restore(Options{TrackDirty: true}, s.sorted)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// verify captures tree and compares it with the tree restored from all captures.
func (s store) verify(t testing.TB, tree *Tree) {
	t.Helper()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	all := make(store)
	all.merge(t, tree.CaptureAll())
	s.merge(t, tree.Capture())
	if !maps.EqualFunc(s, all, bytes.Equal) {
		t.Fatalf("the captures together have %d keys, the capture of all has %d, or others", len(s), len(all))
	}
	other := s.restore(t)
	if err := other.Check(); err != nil {
		t.Fatalf("restored: %v", err)
	}
	gotPending, _ := other.PendingConfig()
	wantPending, _ := tree.PendingConfig()
	gotMembers, gotVersion := other.Config()
	wantMembers, wantVersion := tree.Config()
	if gotPending.Serial != wantPending.Serial || gotVersion != wantVersion ||
		!gotPending.Members.Equal(wantPending.Members) || !gotMembers.Equal(wantMembers) {
		t.Fatalf("restored: %+v, was %+v", other.ensemble, tree.ensemble)
	}
	if other.meta() != tree.meta() || other.dataSize != tree.dataSize || other.numEphemerals != tree.numEphemerals {
		t.Fatalf("restored: %+v, was %+v", other.meta(), tree.meta())
	}
	if got, want := slices.Collect(other.Sessions()), slices.Collect(tree.Sessions()); !slices.Equal(got, want) {
		t.Fatalf("restored sessions: %v, were %v", got, want)
	}
}
