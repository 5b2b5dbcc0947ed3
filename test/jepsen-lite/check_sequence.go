package jepsenlite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// findSequence: no sequential name is given twice, and a create sent after another of the same
// parent was answered gets a higher number.
func findSequence(h []*Record, found func(string, ...*Record)) {
	given := map[string]*Record{}
	byParent := map[string][]*Record{}
	for _, r := range h {
		if r.Op != proto.OpCreate || !r.OK() || !r.Parts[0].Mode.Sequential() {
			continue
		}
		made := r.Parts[0].Made
		if other := given[made]; other != nil {
			found(made+" was given twice", other, r)
		}
		given[made] = r
		byParent[r.Path()] = append(byParent[r.Path()], r) // the requested path: all names share a prefix and have ten digits
	}
	for _, creates := range byParent {
		answered := slices.Clone(creates)
		slices.SortFunc(answered, func(a, b *Record) int { return cmp.Compare(a.Return, b.Return) })
		slices.SortFunc(creates, func(a, b *Record) int { return cmp.Compare(a.Call, b.Call) })
		var highest *Record
		for _, r := range creates {
			for len(answered) > 0 && answered[0].Return < r.Call {
				if highest == nil || answered[0].Parts[0].Made > highest.Parts[0].Made {
					highest = answered[0]
				}
				answered = answered[1:]
			}
			if highest != nil && r.Parts[0].Made <= highest.Parts[0].Made {
				found(fmt.Sprintf("%s was given after %s", r.Parts[0].Made, highest.Parts[0].Made), highest, r)
			}
		}
	}
}
