package checkpoint

import (
	"maps"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/vfs"
)

// Merges, reverts, and merges that end before they count, in any order: the newest transaction is
// whole, no page of it is lost or free, and so is the previous transaction until the next merge.
func TestC4_RevertAndMerge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	exhaustive.Checks(t, 5, 400)
	rapid.Check(t, func(t *rapid.T) {
		f, err := vfs.OS{}.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		type version struct {
			index uint64
			state map[string]string
		}
		current, before := version{state: map[string]string{}}, (*version)(nil)
		check := func(which Transaction, want version) {
			index, state, err := transactionOf(f, which)
			if err != nil || index != want.index || !maps.Equal(state, want.state) {
				t.Fatalf("transaction %d: index %d with %d pairs, %v; want %d with %d", which, index, len(state), err, want.index, len(want.state))
			}
		}
		for step := range uint64(rapid.IntRange(2, 12).Draw(t, "steps")) {
			kind := rapid.SampledFrom([]string{"merge", "merge", "torn", "revert"}).Draw(t, "step")
			switch {
			case kind == "revert" && before != nil:
				if err := revert(unsynced{f}); err != nil {
					t.Fatal(err)
				}
				current, before = *before, nil
			case kind == "torn" && step > 0:
				meta := make([]byte, firstDataPage*minPageSize)
				if _, err := f.ReadAt(meta, 0); err != nil {
					t.Fatal(err)
				}
				old, err := newPageReader(f, Newest)
				if err != nil {
					t.Fatal(err)
				}
				if err := mergeDelta(unsynced{f}, old, drawDelta(t, current.state), step+1); err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteAt(meta, 0); err != nil { // the meta page of the merge is lost
					t.Fatal(err)
				}
				before = nil // the merge may have used its pages
			default:
				next := version{step + 1, maps.Clone(current.state)}
				d := drawDelta(t, current.state)
				d.to(next.state)
				var old *pageReader
				if step > 0 {
					if old, err = newPageReader(f, Newest); err != nil {
						t.Fatal(err)
					}
				}
				if err := mergeDelta(unsynced{f}, old, d, next.index); err != nil {
					t.Fatal(err)
				}
				if step > 0 {
					before = &version{current.index, current.state}
				}
				current = next
			}
			check(Newest, current)
			if before != nil {
				check(Previous, *before)
			}
		}
	})
}
