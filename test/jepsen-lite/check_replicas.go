package jepsenlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// findReplicas: in the end, all members have the same znodes with the same data and Stats.
func findReplicas(h []*Record, found func(string, ...*Record)) {
	views := map[string]map[string]*Record{} // by client, then by op and path
	for _, r := range h {
		if !isOf(r, loadFinal) || !r.Answered() || r.Op == proto.OpSync {
			continue
		}
		if views[r.Client] == nil {
			views[r.Client] = map[string]*Record{}
		}
		views[r.Client][r.Op.String()+" "+r.Path()] = r
	}
	first := views[loadFinal+"-1"]
	for client, view := range views {
		for key, r := range view {
			o := first[key]
			if o == nil {
				found(fmt.Sprintf("%s of %s has no like on member 1", key, client), r)
				continue
			}
			p, q := r.Parts[0], o.Parts[0]
			slices.Sort(p.Children)
			slices.Sort(q.Children)
			if r.Err != o.Err || p.Got != q.Got || p.Stat != q.Stat || !slices.Equal(p.Children, q.Children) {
				found(fmt.Sprintf("%s of %s differs from member 1's: %v and %v, %+v and %+v",
					key, client, strings.TrimSpace(p.Got), strings.TrimSpace(q.Got), p.Stat, q.Stat), r, o)
			}
		}
		for key, o := range first {
			if view[key] == nil {
				found(fmt.Sprintf("%s of member 1 has no like at %s", key, client), o)
			}
		}
	}
}
