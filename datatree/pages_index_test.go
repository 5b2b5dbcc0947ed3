package datatree

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// names returns the children of /p by pages.
func (m *pagesModel) names() (names []string) {
	for r := (proto.ListPageRequest{Path: "/p"}); ; r.StartAfter = names[len(names)-1] {
		page, _ := m.tree.Page(&r, Caller{SkipACL: true})
		for page.Next != nil && *page.Next == r.StartAfter {
			page, _ = m.tree.Page(&r, Caller{SkipACL: true})
		}
		for _, e := range page.Entries {
			names = append(names, e.Name)
		}
		if page.Next == nil {
			return names
		}
	}
}

// TestPageIndex_Fills: names that grow fill the chunks, others at least half of each. A chunk that
// is half stale is not split. After they were shown, chunks are in order.
func TestPageIndex_Fills(t *testing.T) {
	const n = 211
	for _, step := range []int{1, n - 1, 7, 13, 29, 51, 100, 155} { // growing, falling, and mixed
		m := newPagesModel()
		for i := range n {
			m.createAt(fmt.Sprintf("/p/%03d", 100+(i*step+step/2)%n), nil)
		}
		for len(m.tree.pages.of) == 0 || m.tree.pages.of[m.tree.get("/p").dir].built < n {
			_, _ = m.tree.Page(&proto.ListPageRequest{Path: "/p"}, pagesReader)
		}
		x := m.tree.pages.of[m.tree.get("/p").dir]
		for i, c := range x.chunks[:len(x.chunks)-1] {
			if len(c.ids) < m.tree.pages.chunk/2 || step == 1 && len(c.ids) < m.tree.pages.chunk {
				t.Errorf("step %d: chunk %d has %d children", step, i, len(c.ids))
			}
		}
		if names := m.names(); len(names) != n || !slices.IsSorted(names) {
			t.Errorf("step %d: %v", step, names)
		}
		if slices.ContainsFunc(x.chunks, func(c pageChunk) bool { return !c.sorted }) {
			t.Errorf("step %d: a chunk that was shown is not in order", step)
		}
		chunks := len(x.chunks)
		if step != 1 {
			continue
		}
		for _, name := range []string{"100", "101", "102"} { // of the four in the first chunk
			m.limited.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: "/p/" + name, Version: -1}).Append(nil))
		}
		m.createAt("/p/000", nil)
		if m.names(); len(x.chunks) != chunks {
			t.Errorf("%d chunks became %d for one child more", chunks, len(x.chunks))
		}
	}
}

// TestPageIndex_EmptyChunks: a page drops the empty chunks that it meets, except for the first one,
// which is for names before all others.
func TestPageIndex_EmptyChunks(t *testing.T) {
	m := newPagesModel()
	const n = 40
	for i := range n {
		m.createAt(fmt.Sprintf("/p/%d", 100+i), nil)
	}
	m.names()
	x := m.tree.pages.of[m.tree.get("/p").dir]
	chunks := len(x.chunks)
	for i := range 4 { // all of the first chunk and of the second
		for _, name := range []int{100 + i, 104 + i} {
			m.limited.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: fmt.Sprintf("/p/%d", name), Version: -1}).Append(nil))
		}
	}
	if m.names(); len(x.chunks) != chunks-1 {
		t.Errorf("%d chunks, of which two became empty, are %d", chunks, len(x.chunks))
	}
	m.createAt("/p/000", nil)
	if names := m.names(); len(names) != n-7 || names[0] != "000" {
		t.Errorf("%v", names)
	}
}

// TestPageIndex_StaleNumbers: a stale number leads to no child, neither when it is free, with all
// numbers near it, nor when it is that of a child of another chunk.
func TestPageIndex_StaleNumbers(t *testing.T) {
	m := newPagesModel()
	remove := func(name string) {
		m.limited.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: "/p/" + name, Version: -1}).Append(nil))
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		m.createAt("/p/"+name, nil)
	}
	m.names()
	remove("e") // the first of the second chunk
	remove("a")
	m.createAt("/p/e", nil) // has the number of a
	if names := fmt.Sprint(m.names()); names != "[b c d e f g h]" {
		t.Error(names)
	}
	const pageSlots = 1024 // of a slab.Slab
	const n = 5 * pageSlots
	for i := range n {
		m.createAt(fmt.Sprintf("/p/%05d", i), nil)
	}
	m.names()
	for i := range 2 * pageSlots { // at least one page of numbers
		remove(fmt.Sprintf("%05d", pageSlots+i))
	}
	if names := m.names(); len(names) != n-2*pageSlots+7 || !slices.IsSorted(names) {
		t.Errorf("%d names", len(names))
	}
}

// TestPageIndex_IsSmall: an index takes a small part of what its children weigh, is dropped after a
// time without pages, and with most of its children.
func TestPageIndex_IsSmall(t *testing.T) {
	// What earlier tests have left in pools outlives a collection, and the watchdog allocates
	// between a collection and the reading. Both only add.
	live := func() int64 {
		least := int64(math.MaxInt64)
		for range 3 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			least = min(least, int64(m.HeapAlloc))
		}
		return least
	}
	l := &limited{tree: New(Options{})}
	l.createAt("/p", nil)
	const n = 100_001
	for i := range n {
		l.createAt(fmt.Sprintf("/p/%06d", i*7919%n), nil)
	}
	pages := l.tree.pages
	build := func() {
		for more := true; more; {
			page, _ := l.tree.Page(&proto.ListPageRequest{Path: "/p", Limit: 1}, pagesReader)
			more = len(page.Entries) == 0
		}
	}
	without := live()
	build()
	if took, weight := live()-without, l.tree.Weight(); took > weight/10 || took < 4*n {
		t.Errorf("the index takes %d bytes, its children weigh %d", took, weight)
	}
	for range 2 {
		for range maxIdlePages {
			l.tree.AgePages()
		}
		if len(pages.of) != 1 {
			t.Fatal("the index is gone early")
		}
		build() // it is used
	}
	for range maxIdlePages {
		l.tree.AgePages()
	}
	if l.tree.AgePages(); len(pages.of) != 0 {
		t.Error("the index stays when it is not used")
	}
	build()
	for i := range n/2 + 1 {
		if len(pages.of) != 1 {
			t.Fatalf("the index is gone after %d children", i)
		}
		l.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: fmt.Sprintf("/p/%06d", i), Version: -1}).Append(nil))
	}
	if len(pages.of) != 0 {
		t.Error("the index stays when half of the children are gone")
	}
}
