package datatree

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// noteAt returns a note with a path that need not be valid.
func noteAt(path string, id znodeID) note {
	b, _ := seal(nil, path, &record{})
	n := znode{}
	n.setBlob(b)
	return note{n.first, n.size, id}
}

// Notes are in the order of their paths, whatever these have in common.
func TestSortNotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringOfN(rapid.RuneFrom([]rune("ab/\x00é")), 0, 12, -1)
		common := rapid.SliceOfN(piece, 1, 4).Draw(t, "common")
		path := rapid.Custom(func(t *rapid.T) string {
			return "/" + rapid.SampledFrom(common).Draw(t, "begin") + piece.Draw(t, "end")
		})
		notes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) note {
			return noteAt(path.Draw(t, "path"), znodeID(rapid.IntRange(0, 2).Draw(t, "id")))
		}), 0, 60).Draw(t, "notes")
		want := slices.Clone(notes)
		slices.SortStableFunc(want, func(a, b note) int {
			return comparePaths(numbered{note: a}, numbered{note: b})
		})
		sortNotes(notes)
		for i := range notes {
			if notes[i].blob().path() != want[i].blob().path() || notes[i].id != want[i].id {
				t.Fatalf("%q at %d instead of %q", notes[i].blob().path(), i, want[i].blob().path())
			}
		}
	})
}

// Many deleted znodes of one path, and a chain of parents.
func TestSortNotes_Alike(t *testing.T) {
	var notes []note
	for i := range 1000 {
		notes = append(notes, noteAt("/locks/a", 0), noteAt("/"+strings.Repeat("a/", i)+"a", 1))
	}
	sortNotes(slices.Repeat([]note{noteAt("/locks/a", 0)}, 20))
	rand.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	sortNotes(notes)
	if !slices.IsSortedFunc(notes, func(a, b note) int { return comparePaths(numbered{note: a}, numbered{note: b}) }) {
		t.Error("not sorted")
	}
}

// BenchmarkSortNotes sorts 100,000 changed znodes of 1,000,000.
func BenchmarkSortNotes(b *testing.B) {
	t, _ := benchTree(b, 1_000_000)
	notes := t.CaptureAll().znodes
	rand.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	some := make([]note, 100_000)
	for b.Loop() {
		copy(some, notes)
		sortNotes(some)
	}
}
