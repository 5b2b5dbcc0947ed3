package datatree

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// TestIndex_IsAMap adds and drops many paths, so that shards grow, shrink and move entries into
// holes.
func TestIndex_IsAMap(t *testing.T) {
	tree := empty(Options{})
	exhaustive.Checks(t, 8, 100)
	rapid.Check(t, func(rt *rapid.T) {
		x, want := newIndex(), make(map[string]*znode)
		var znodes pool[znode]
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			from, n := rapid.IntRange(0, 3000).Draw(rt, "from"), rapid.IntRange(0, 6000).Draw(rt, "n")
			grow := rapid.Bool().Draw(rt, "grow")
			for i := from; i < from+n; i++ {
				path := fmt.Sprintf("/%d", i)
				switch n := want[path]; {
				case grow && n == nil:
					id, n := znodes.alloc()
					n.id = id
					n.setBlob(tree.seal(path, &record{}))
					want[path] = n
					x.put(n)
				case !grow && n != nil:
					x.drop(n)
					znodes.free(n.id)
					delete(want, path)
				}
			}
			for i := range 9000 {
				if path := fmt.Sprintf("/%d", i); x.get(&znodes, path) != want[path] {
					rt.Fatalf("%s is %v, want %v", path, x.get(&znodes, path), want[path])
				}
			}
			for i := range x.shards {
				s, used := &x.shards[i], 0
				for _, e := range s.slots {
					if e != 0 {
						used++
					}
				}
				if used != s.n || len(s.slots) > 64 && s.n < len(s.slots)*3/8 {
					rt.Fatalf("shard %d counts %d znodes, %d of %d slots are used", i, s.n, used, len(s.slots))
				}
			}
			all := 0
			for n := range znodes.all() {
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
