package recipes

import (
	"slices"

	"github.com/gozkd/gozkd/internal/sequence"
)

// Sequence returns the number that the server appended to the name of a sequential znode, and the
// part before the number. The names may be those of any client: "_c_<guid>-lock-0000000003" of
// Curator, "<guid>__lock__0000000003" of kazoo, "n_0000000003".
//
// After 2147483647 the numbers continue at -2147483648. A minus sign before the digits could also
// end the prefix. At the start of the name and after '-' and '_', it is the number's sign.
func Sequence(name string) (number int32, prefix string, ok bool) { return sequence.Parse(name) }

// CompareSequence orders sequence numbers in the order in which the server assigned them, including
// the step from 2147483647 to -2147483648. Numbers that exist at the same time must span less than
// half of the range.
func CompareSequence(a, b int32) int { return sequence.Compare(a, b) }

// Sequential returns the names that have a sequence number, in the order of creation. names is not
// modified.
func Sequential(names []string) []string {
	type numbered struct {
		name   string
		number int32
	}
	var all []numbered
	for _, name := range names {
		if n, _, ok := Sequence(name); ok {
			all = append(all, numbered{name, n})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return CompareSequence(a.number, b.number) })
	sorted := make([]string, len(all))
	for i, n := range all {
		sorted[i] = n.name
	}
	return sorted
}
