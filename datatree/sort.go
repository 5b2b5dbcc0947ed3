package datatree

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// sortNotes sorts notes by path, and of one path the present znode before deleted ones.
//
// The blobs of a large tree are not in the processor's caches, and a comparison of two paths would
// read both. So a round reads each path once: its next eight bytes become a number, the numbers are
// sorted, and further rounds sort the notes whose numbers are equal.
func sortNotes(notes []note) {
	run := make([]numbered, len(notes))
	for i, n := range notes {
		run[i].note = n
	}
	sortRun(run, 0)
	for i := range run {
		notes[i] = run[i].note
	}
}

// numbered is a note with eight bytes of its path.
type numbered struct {
	bytes uint64
	note
}

// sortRun sorts notes whose paths have the first at bytes in common.
func sortRun(run []numbered, at int) {
	const small = 8
	if len(run) <= small {
		slices.SortFunc(run, comparePaths)
		return
	}
	touchPath := func(n *numbered) byte { return n.blob().text[0] }
	first := run[0].blob().path()
	shared := len(first)
	for i := range run {
		prefetch(run, i, touchPath)
		shared = at + commonLen(first[at:shared], run[i].blob().path()[at:])
	}
	for i := range run {
		prefetch(run, i, touchPath)
		run[i].bytes = number(run[i].blob().path()[shared:])
	}
	slices.SortFunc(run, func(a, b numbered) int { return cmp.Compare(a.bytes, b.bytes) })
	if run[0].bytes == run[len(run)-1].bytes { // one path, or paths that end in zeros
		slices.SortFunc(run, comparePaths)
		return
	}
	for len(run) > 0 {
		n := 1
		for n < len(run) && run[n].bytes == run[0].bytes {
			n++
		}
		sortRun(run[:n], shared)
		run = run[n:]
	}
}

// commonLen returns how many bytes a and b have in common at the beginning.
func commonLen(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// number returns the first eight bytes of a path as a number, in the same order. A shorter path
// counts as ending in zeros.
func number(path string) uint64 {
	var b [8]byte
	copy(b[:], path)
	return binary.BigEndian.Uint64(b[:])
}

// comparePaths compares two notes by reading both paths.
func comparePaths(a, b numbered) int {
	return cmp.Or(strings.Compare(a.blob().path(), b.blob().path()), cmp.Compare(b.id, a.id))
}
