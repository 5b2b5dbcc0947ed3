package datatree

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/slab"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// TestIndex_IsAMap adds and drops many paths, so that shards grow, shrink and move entries into
// holes.
func TestIndex_IsAMap(t *testing.T) {
	tree := empty(Options{})
	exhaustive.Checks(t, 8, 100)
	rapid.Check(t, func(rt *rapid.T) {
		x, want := newIndex(), make(map[string]*znode)
		var znodes slab.Slab[znode]
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			from, n := rapid.IntRange(0, 3000).Draw(rt, "from"), rapid.IntRange(0, 6000).Draw(rt, "n")
			grow := rapid.Bool().Draw(rt, "grow")
			for i := from; i < from+n; i++ {
				path := fmt.Sprintf("/%d", i)
				switch n := want[path]; {
				case grow && n == nil:
					id, n := znodes.Alloc()
					n.id = id
					n.setBlob(tree.seal(path, &record{}))
					want[path] = n
					x.put(n)
				case !grow && n != nil:
					x.drop(n)
					znodes.Free(n.id)
					delete(want, path)
				}
			}
			for i := range 9000 {
				if path := fmt.Sprintf("/%d", i); x.get(&znodes, path) != want[path] {
					rt.Fatalf("%s is %v, want %v", path, x.get(&znodes, path), want[path])
				}
			}
			all := 0
			for n := range znodes.All() {
				if all++; want[n.path()] != n {
					rt.Fatalf("%s is there and should not be", n.path())
				}
			}
			if all != len(want) || x.len() != len(want) {
				rt.Fatalf("%d found, counted are %d, want %d", all, x.len(), len(want))
			}
		}
	})
}

// TestIndex_Shrinks: a shard counts its znodes, and gives memory back when few are left.
func TestIndex_Shrinks(t *testing.T) {
	tree, x := empty(Options{}), newIndex()
	var znodes slab.Slab[znode]
	var all []*znode
	for i := range 60_000 {
		id, n := znodes.Alloc()
		n.id = id
		n.setBlob(tree.seal(fmt.Sprintf("/%d", i), &record{}))
		all = append(all, n)
	}
	for round := range 2 {
		for _, n := range all {
			x.put(n)
		}
		for i, n := range all {
			x.drop(n)
			if i%5000 != 0 {
				continue
			}
			for k := range x.shards {
				s, used := &x.shards[k], 0
				for _, e := range s.slots {
					if e != 0 {
						used++
					}
				}
				if used != s.n || len(s.slots) > 64 && s.n < len(s.slots)*3/8 || 16*s.n > 13*len(s.slots) {
					t.Fatalf("round %d: shard %d counts %d znodes, %d of %d slots are used", round, k, s.n, used, len(s.slots))
				}
			}
		}
		if x.len() != 0 {
			t.Errorf("%d znodes are left", x.len())
		}
	}
	for k := range x.shards {
		if n := len(x.shards[k].slots); n > 64 {
			t.Errorf("shard %d without znodes has %d slots", k, n)
		}
	}
}
