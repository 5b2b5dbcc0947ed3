package slab

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// TestSlab_KeepsItsValues allocates and frees values until pages are allocated and released:
// numbers are unique, values do not change or move, and empty pages are released.
func TestSlab_KeepsItsValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p Slab[uint64]
		type value struct {
			at *uint64
			is uint64
		}
		there := make(map[uint32]value)
		var ids []uint32
		last := uint64(0)
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			n := rapid.IntRange(0, 3*pageSlots).Draw(rt, "n")
			if rapid.Bool().Draw(rt, "free") {
				fromEnd, step := rapid.Bool().Draw(rt, "from the end"), rapid.IntRange(1, 5).Draw(rt, "step")
				for i := 0; i < n && len(ids) > 0; i++ {
					k := i * step % len(ids)
					if fromEnd {
						k = len(ids) - 1 - k
					}
					p.Free(ids[k])
					if v := p.Peek(ids[k]); v != nil && *v != 0 {
						rt.Fatalf("%d was freed and is %d", ids[k], *v)
					}
					delete(there, ids[k])
					ids[k] = ids[len(ids)-1]
					ids = ids[:len(ids)-1]
				}
			} else {
				for range n {
					id, at := p.Alloc()
					if _, twice := there[id]; id == 0 || twice || *at != 0 || p.At(id) != at {
						rt.Fatalf("number %d, taken %v, holds %d", id, twice, *at)
					}
					last++
					*at = last
					there[id] = value{at, last}
					ids = append(ids, id)
				}
			}
			all, pages := 0, make(map[uint32]bool)
			for v := range p.All() {
				all++
				if *v == 0 {
					rt.Fatal("a free slot is listed")
				}
			}
			for id, v := range there {
				pages[id>>pageBits] = true
				if p.At(id) != v.at || p.Peek(id) != v.at || *v.at != v.is {
					rt.Fatalf("%d is %d, want %d", id, *p.At(id), v.is)
				}
			}
			if all != len(there) || p.Len() != len(there) {
				rt.Fatalf("%d listed, counted are %d, want %d", all, p.Len(), len(there))
			}
			kept := 0
			for _, page := range p.pages {
				if page != nil {
					kept++
				}
			}
			if kept > len(pages)+2 { // the first page stays, and one with room
				rt.Fatalf("%d pages for values on %d", kept, len(pages))
			}
		}
		if p.Peek(1<<32-1) != nil {
			rt.Fatal("there is a slot without a page")
		}
	})
}

// The last page with room stays although it is empty, others are released, and the next page has
// the number of one that was released.
func TestSlab_ReleasesPages(t *testing.T) {
	var p Slab[int]
	alloc := func(want uint32) {
		t.Helper()
		if id, _ := p.Alloc(); id != want {
			t.Errorf("number %d, want %d", id, want)
		}
	}
	for i := range uint32(2 * pageSlots) {
		alloc(i + 1) // up to the first value of the third page
	}
	p.Free(2 * pageSlots)
	if p.pages[2] == nil {
		t.Error("the only page with room is gone")
	}
	alloc(2 * pageSlots)
	p.Free(1)
	if p.Free(2 * pageSlots); p.pages[2] != nil {
		t.Error("an empty page stays beside another one with room")
	}
	alloc(1)
	alloc(2 * pageSlots)
	if len(p.pages) != 3 {
		t.Errorf("%d pages", len(p.pages))
	}
	for range p.All() {
		break
	}
}

// TestSlab_Full uses all pages.
func TestSlab_Full(t *testing.T) {
	exhaustive.Only(t) // with the race detector it takes gigabytes
	p := Slab[byte]{pages: make([]*[pageSlots]byte, maxPages-1), use: make([]pageUse, maxPages-1)}
	for range pageSlots {
		if id, _ := p.Alloc(); id>>pageBits != maxPages-1 {
			t.Fatalf("number %#x", id)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("one more than all was made")
		}
	}()
	p.Alloc()
}
