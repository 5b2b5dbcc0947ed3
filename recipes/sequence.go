package recipes

import (
	"cmp"
	"slices"
	"strconv"
)

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }

// sequenceDigits is how many the server writes at least, a minus sign included.
const sequenceDigits = 10

// Sequence returns the number that the server put at the end of a sequential znode's name, and what stands before it, whatever the client
// is: "_c_<guid>-lock-0000000003" of Curator, "<guid>__lock__0000000003" of kazoo, "n_0000000003".
//
// After 2147483647 the numbers go on at -2147483648, where a minus sign might as well end the name before it. It is taken for a sign at
// the start of a name and after '-' and '_'.
func Sequence(name string) (number int32, prefix string, ok bool) {
	begin := len(name)
	for begin > 0 && '0' <= name[begin-1] && name[begin-1] <= '9' && len(name)-begin < sequenceDigits {
		begin--
	}
	digits := len(name) - begin
	minus := begin > 0 && name[begin-1] == '-'
	switch {
	case digits == sequenceDigits-1 && minus: // nine digits are written with a sign only
		begin--
	case digits < sequenceDigits:
		return 0, "", false
	case minus && (begin == 1 || name[begin-2] == '-' || name[begin-2] == '_'):
		begin--
	}
	n, err := strconv.ParseInt(name[begin:], 10, 32)
	if err != nil && name[begin] != '-' && minus { // more than there is: only with a sign
		begin--
		n, err = strconv.ParseInt(name[begin:], 10, 32)
	}
	if err != nil {
		return 0, "", false
	}
	return int32(n), name[:begin], true
}

// CompareSequence orders sequence numbers as they were given out, also where they went over from 2147483647 to -2147483648, as long
// as those that are there at one time span less than half of all.
func CompareSequence(a, b int32) int { return cmp.Compare(a-b, 0) }

// Sequential returns those of names that have a sequence number, in the order in which they were created. It leaves names as it is.
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
