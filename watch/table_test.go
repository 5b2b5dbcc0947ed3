package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

func match(t *Table, ev proto.EventType, path string) []ConnID {
	return slices.Sorted(slices.Values(t.Match(nil, ev, path)))
}

// TestMatch_Table checks which watches match which event on /a/b.
func TestMatch_Table(t *testing.T) {
	const (
		onData ConnID = iota + 1
		onChild
		onPersistent
		onRecursive
		onParentRecursive
		onRootRecursive
		onParentPersistent
		onSibling
	)
	tests := map[proto.EventType][]ConnID{
		proto.EventCreated:         {onData, onPersistent, onRecursive, onParentRecursive, onRootRecursive},
		proto.EventDataChanged:     {onData, onPersistent, onRecursive, onParentRecursive, onRootRecursive},
		proto.EventDeleted:         {onData, onChild, onPersistent, onRecursive, onParentRecursive, onRootRecursive},
		proto.EventChildrenChanged: {onChild, onPersistent},
	}
	for ev, want := range tests {
		table := New()
		table.Add(onData, "/a/b", Data)
		table.Add(onChild, "/a/b", Child)
		table.Add(onPersistent, "/a/b", Persistent)
		table.Add(onRecursive, "/a/b", PersistentRecursive)
		table.Add(onParentRecursive, "/a", PersistentRecursive)
		table.Add(onRootRecursive, "/", PersistentRecursive)
		table.Add(onParentPersistent, "/a", Persistent)
		table.Add(onSibling, "/a/bb", Data|Child|Persistent|PersistentRecursive)
		if got := match(table, ev, "/a/b"); !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", ev, got, want)
		}
		again := slices.DeleteFunc(slices.Clone(want), func(c ConnID) bool { return c == onData || c == onChild })
		if got := match(table, ev, "/a/b"); !slices.Equal(got, again) {
			t.Errorf("%v again: got %v, want %v", ev, got, again)
		}
	}
}

func TestMatch_OncePerConnection(t *testing.T) {
	table := New()
	for _, path := range []string{"/", "/a", "/a/b"} {
		table.Add(7, path, Data|Child|Persistent|PersistentRecursive)
	}
	if got := match(table, proto.EventDeleted, "/a/b"); !slices.Equal(got, []ConnID{7}) {
		t.Fatalf("got %v, want connection 7 once", got)
	}
}

func TestAdd_ClonesThePath(t *testing.T) {
	buf := []byte("/a")
	table := New()
	table.Add(1, string(buf), Data)
	// A string of a decoder with AliasStrings changes when its buffer is reused.
	aliased := aliasing(buf)
	table.Add(2, aliased, Data)
	table.Add(2, aliasing([]byte("/b")), Data)
	other := []byte("/c")
	table.Add(3, aliasing(other), Data)
	copy(buf, "/x")
	copy(other, "/y")
	if got, want := table.ByConn(), map[ConnID][]string{1: {"/a"}, 2: {"/a", "/b"}, 3: {"/c"}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if got := match(table, proto.EventCreated, "/c"); !slices.Equal(got, []ConnID{3}) {
		t.Fatalf("got %v, want connection 3", got)
	}
}

func TestRemove_Exact(t *testing.T) {
	table := New()
	all := Data | Child | Persistent | PersistentRecursive
	for k, want := range map[proto.WatcherType]Kind{
		proto.WatcherChildren: Child, proto.WatcherData: Data, proto.WatcherAny: all,
		proto.WatcherPersistent: Persistent, proto.WatcherPersistentRecursive: PersistentRecursive,
	} {
		table.Add(1, "/a", all)
		table.Add(2, "/a", all)
		for _, tc := range []struct {
			c    ConnID
			path string
			k    proto.WatcherType
		}{{1, "/a/b", k}, {1, "/", k}, {3, "/a", k}, {1, "/a", 0}, {1, "/a", 6}} {
			if table.Has(tc.c, tc.path, tc.k) || table.Remove(tc.c, tc.path, tc.k) {
				t.Errorf("type %d: found a watch of connection %d on %s with type %d", k, tc.c, tc.path, tc.k)
			}
		}
		if !table.Has(1, "/a", k) || !table.Remove(1, "/a", k) || table.Has(1, "/a", k) || table.Remove(1, "/a", k) {
			t.Errorf("type %d: not found, or found again after it was removed", k)
		}
		if got := table.get(1, "/a", dataList) | table.get(1, "/a", childList); got != all&^want {
			t.Errorf("type %d: left %b, want %b", k, got, all&^want)
		}
		if got := table.get(2, "/a", dataList) | table.get(2, "/a", childList); got != all {
			t.Errorf("type %d: the other connection is left with %b, want %b", k, got, all)
		}
	}
}

// A connection that gives up its recursive watch, and keeps another, does not stand before those
// that have one.
func TestRemove_RecursiveAlone(t *testing.T) {
	table := New()
	table.Add(1, "/a", PersistentRecursive)
	table.Add(2, "/a", Persistent|PersistentRecursive)
	table.Remove(2, "/a", proto.WatcherPersistentRecursive)
	if got := match(table, proto.EventCreated, "/a/b"); !slices.Equal(got, []ConnID{1}) {
		t.Errorf("got %v, want connection 1", got)
	}
}

// More watches than a page of a slab has records.
func TestTable_Many(t *testing.T) {
	const most = 3 * 1024
	table := New()
	for c := range ConnID(most) {
		table.Add(c, fmt.Sprint("/", c), Data)
	}
	for c := range ConnID(most) {
		if got := match(table, proto.EventDeleted, fmt.Sprint("/", c)); !slices.Equal(got, []ConnID{c}) {
			t.Errorf("got %v, want connection %d", got, c)
		}
	}
}

// model is a simple implementation of the table.
type model map[ConnID]map[string]Kind

func (m model) match(ev proto.EventType, path string) []ConnID {
	var hit []ConnID
	for c, paths := range m {
		told := false
		for p, k := range paths {
			below := p == "/" || p != "" && strings.HasPrefix(path, p+"/")
			switch {
			case p == path && ev == proto.EventChildrenChanged:
				told = told || k&(Child|Persistent) != 0
				paths[p] = k &^ Child
			case p == path && ev == proto.EventDeleted:
				told = told || k != 0
				paths[p] = k &^ (Data | Child)
			case p == path:
				told = told || k&(Data|Persistent|PersistentRecursive) != 0
				paths[p] = k &^ Data
			case below && ev != proto.EventChildrenChanged:
				told = told || k&PersistentRecursive != 0
			}
		}
		if told {
			hit = append(hit, c)
		}
	}
	slices.Sort(hit)
	return hit
}

func (m model) byConn() map[ConnID][]string {
	out := make(map[ConnID][]string)
	for c, paths := range m {
		for p, k := range paths {
			if k&(Data|Persistent|PersistentRecursive) != 0 {
				out[c] = append(out[c], p)
			}
		}
		slices.Sort(out[c])
	}
	return out
}

func TestTable_AgreesWithModel(t *testing.T) {
	// Few paths and more connections than maxScan, so that lists cross the bound both ways.
	paths := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/b", ""})
	conns := rapid.Custom(func(t *rapid.T) ConnID { return ConnID(rapid.Uint64Range(1, 3*maxScan).Draw(t, "conn")) })
	types := map[proto.WatcherType]Kind{
		proto.WatcherChildren: Child, proto.WatcherData: Data, proto.WatcherAny: ^Kind(0),
		proto.WatcherPersistent: Persistent, proto.WatcherPersistentRecursive: PersistentRecursive, 0: 0, 6: 0,
	}
	rapid.Check(t, func(t *rapid.T) {
		table, m := New(), make(model)
		add := func(c ConnID, path string, k Kind) {
			table.Add(c, path, k)
			if m[c] == nil {
				m[c] = make(map[string]Kind)
			}
			m[c][path] |= k
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				add(conns.Draw(t, "c"), paths.Draw(t, "path"), Kind(rapid.Uint8Range(1, 15).Draw(t, "kind")))
			},
			"addMany": func(t *rapid.T) {
				path, k := paths.Draw(t, "path"), Kind(rapid.Uint8Range(1, 15).Draw(t, "kind"))
				for c := range conns.Draw(t, "n") {
					add(c+1, path, k)
				}
			},
			"match": func(t *rapid.T) {
				ev := proto.EventType(rapid.Int32Range(1, 4).Draw(t, "event"))
				path := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/ab", "/b/x"}).Draw(t, "path")
				if got, want := match(table, ev, path), m.match(ev, path); !slices.Equal(got, want) {
					t.Fatalf("%v %s: got %v, want %v", ev, path, got, want)
				}
			},
			"hasRemove": func(t *rapid.T) {
				c, path := conns.Draw(t, "c"), paths.Draw(t, "path")
				k := proto.WatcherType(rapid.SampledFrom([]int32{0, 1, 2, 3, 4, 5, 6}).Draw(t, "type"))
				want := m[c][path]&types[k] != 0
				if got := table.Has(c, path, k); got != want {
					t.Fatalf("Has(%d, %s, %d) = %t, want %t", c, path, k, got, want)
				}
				if got := table.Remove(c, path, k); got != want {
					t.Fatalf("Remove(%d, %s, %d) = %t, want %t", c, path, k, got, want)
				}
				if want {
					m[c][path] &^= types[k]
				}
			},
			"removeConn": func(t *rapid.T) {
				c := conns.Draw(t, "c")
				table.RemoveConn(c)
				delete(m, c)
			},
			"": func(t *rapid.T) { compare(t, table, m) },
		})
		for c := range m {
			table.RemoveConn(c)
		}
		if !table.Empty() || len(table.paths)+len(table.conns)+len(table.indexes)+table.recursive != 0 {
			t.Fatalf("after the last connection: paths %v conns %v indexes %v recursive %d",
				table.paths, table.conns, table.indexes, table.recursive)
		}
		if table.entry.Len()+table.path.Len()+table.conn.Len() != 0 {
			t.Fatal("after the last connection some records are not free")
		}
	})
}

// compare compares the listings and the counters.
func compare(t *rapid.T, table *Table, m model) {
	want := m.byConn()
	maps.DeleteFunc(want, func(_ ConnID, paths []string) bool { return len(paths) == 0 })
	if got := table.ByConn(); !maps.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("ByConn: got %v, want %v", got, want)
	}
	inTable, pairs, any := make(map[string]bool), 0, false
	for _, paths := range want {
		for _, p := range paths {
			inTable[p] = true
			pairs++
		}
	}
	if c, p, w := table.Stats(); c != len(want) || p != len(inTable) || w != pairs {
		t.Fatalf("Stats: got %d %d %d, want %d %d %d", c, p, w, len(want), len(inTable), pairs)
	}
	for c := range ConnID(3*maxScan + 2) {
		got, want, calls := make(map[string]Kind), maps.Clone(m[c]), 0
		table.OfConn(c, func(path string, k Kind) bool { got[path] |= k; return true })
		table.OfConn(c, func(string, Kind) bool { calls++; return false })
		maps.DeleteFunc(want, func(_ string, k Kind) bool { return k == 0 })
		if !maps.Equal(got, want) || calls != min(1, len(want)) {
			t.Fatalf("OfConn(%d): got %v, want %v; %d calls", c, got, want, calls)
		}
	}
	entries := 0
	held, watched := make(map[ConnID]int64), make(map[string]bool)
	for c, paths := range m {
		for path, k := range paths {
			any = any || k != 0
			for _, side := range []Kind{inData, inChild} {
				if k&side != 0 {
					entries++
					held[c] += int64(entryBytes + pathBytes + len(path))
					watched[path] = true
				}
			}
		}
	}
	list, got := table.Held(), make(map[ConnID]int64)
	for _, h := range list {
		got[h.Conn] = h.Bytes
	}
	if len(list) != len(held) || !maps.Equal(got, held) {
		t.Fatalf("Held: got %v, want %v", list, held)
	}
	sum := int64(entries * entryBytes)
	for path := range watched {
		sum += int64(pathBytes + len(path))
	}
	if got := table.Bytes(); got != sum {
		t.Fatalf("Bytes: got %d, want %d", got, sum)
	}
	if got := table.Len(); got != entries {
		t.Fatalf("Len: got %d, want %d", got, entries)
	}
	if table.Empty() == any {
		t.Fatalf("Empty = %t with %v", table.Empty(), m)
	}
}

// TestTable_ConcurrentUse is for the race detector: connections register and leave while events are
// matched.
func TestTable_ConcurrentUse(t *testing.T) {
	table := New()
	var wg sync.WaitGroup
	for c := ConnID(1); c <= 4; c++ {
		wg.Go(func() {
			for range 200 {
				for _, path := range []string{"/", "/a", "/a/b"} {
					table.Add(c, path, Data|Child|Persistent|PersistentRecursive)
				}
				if !table.Has(c, "/a", proto.WatcherPersistent) || !table.Remove(c, "/a", proto.WatcherPersistent) {
					t.Error("the connection's own watch is not there")
				}
				table.RemoveConn(c)
			}
		})
	}
	wg.Go(func() {
		var told []ConnID
		for range 1000 {
			if !table.Empty() {
				told = table.Match(told[:0], proto.EventDeleted, "/a/b")
			}
			if len(told) > 4 {
				t.Errorf("told %v: more connections than there are", told)
			}
			table.Stats()
		}
	})
	wg.Wait()
	if !table.Empty() {
		t.Error("not empty after all connections were removed")
	}
}
