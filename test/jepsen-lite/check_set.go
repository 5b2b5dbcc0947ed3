package jepsenlite

import (
	"fmt"
	"path"

	"github.com/gozkd/gozkd/proto"
)

// findSet: a synced list contains what was acknowledged before it was requested, and nothing that
// was not requested before its reply.
func findSet(h []*Record, found func(string, ...*Record)) {
	added := map[string]*Record{} // by path
	var inOrder []*Record
	for _, r := range h {
		if isOf(r, loadSet) && r.Op == proto.OpCreate {
			added[r.Path()] = r
			inOrder = append(inOrder, r)
		}
	}
	for _, r := range h {
		if !isOf(r, loadSet) || r.Op != proto.OpGetChildren2 || !r.OK() || r.Synced == 0 {
			continue
		}
		there := map[string]bool{}
		for _, name := range r.Parts[0].Children {
			p := r.Path() + "/" + name
			there[p] = true
			if a := added[p]; a == nil || a.Call > r.Return {
				found("a list has "+p+", which nobody had added", r)
			} else if a.Answered() && a.Err != proto.OK {
				found(fmt.Sprintf("a list has %s, whose create had failed with %v", p, a.Err), a, r)
			}
		}
		for _, a := range inOrder {
			if a.OK() && a.Return < r.Synced && path.Dir(a.Path()) == r.Path() && !there[a.Path()] {
				found("a synced list does not have "+a.Path(), a, r)
			}
		}
	}
}
