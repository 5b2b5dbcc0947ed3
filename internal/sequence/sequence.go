// Package sequence reads the numbers of sequential znodes.
package sequence

import (
	"cmp"
	"slices"
	"strconv"
)

// digits is the least number of characters that the server writes, a minus sign included.
const digits = 10

// Parse returns the number that the server appended to the name of a sequential znode, and the
// part before the number.
//
// After 2147483647 the numbers continue at -2147483648. A minus sign before the digits could also
// end the prefix. At the start of the name and after '-' and '_', it is the number's sign.
func Parse(name string) (number int32, prefix string, ok bool) {
	begin := len(name)
	for begin > 0 && '0' <= name[begin-1] && name[begin-1] <= '9' && len(name)-begin < digits {
		begin--
	}
	found := len(name) - begin
	minus := begin > 0 && name[begin-1] == '-'
	switch {
	case found == digits-1 && minus: // nine digits only occur with a sign
		begin--
	case found < digits:
		return 0, "", false
	case minus && (begin == 1 || name[begin-2] == '-' || name[begin-2] == '_'):
		begin--
	}
	n, err := strconv.ParseInt(name[begin:], 10, 32)
	if err != nil && name[begin] != '-' && minus { // out of range without the sign
		begin--
		n, err = strconv.ParseInt(name[begin:], 10, 32)
	}
	if err != nil {
		return 0, "", false
	}
	return int32(n), name[:begin], true
}

// Compare orders sequence numbers in the order in which the server assigned them, including
// the step from 2147483647 to -2147483648. Numbers that exist at the same time must span less than
// half of the range.
func Compare(a, b int32) int { return cmp.Compare(a-b, 0) }

// Sequential returns the names with a sequence number, in order of creation. names is not modified.
func Sequential(names []string) []string {
	type numbered struct {
		name   string
		number int32
	}
	var all []numbered
	for _, name := range names {
		if n, _, ok := Parse(name); ok {
			all = append(all, numbered{name, n})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return Compare(a.number, b.number) })
	sorted := make([]string, len(all))
	for i, n := range all {
		sorted[i] = n.name
	}
	return sorted
}

// Index returns the index of name, or -1, in names that Sequential has returned.
func Index(names []string, name string) int {
	number, _, _ := Parse(name)
	i, _ := slices.BinarySearchFunc(names, number, func(other string, number int32) int {
		n, _, _ := Parse(other)
		return Compare(n, number)
	})
	if i < len(names) && names[i] == name {
		return i
	}
	return slices.Index(names, name) // numbers that others chose may be equal, or far apart
}
