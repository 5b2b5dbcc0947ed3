package jepsenlite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// A grant is an acquired lock: a client saw its own znode as the lowest.
type grant struct {
	token string  // name of the znode, which ends with its number
	saw   *Record // the list that showed it
	back  *Record // the delete that released it, if that succeeded
}

// findLock: tokens rise from holder to holder, and nobody acquires the lock while the znode of a
// holder with a lower token exists.
func findLock(h []*Record, found func(string, ...*Record)) {
	owner := map[string]string{} // client, by name of its znode
	grants := map[string]*grant{}
	var inOrder []*grant
	for _, r := range h {
		if !isOf(r, loadLock) || !r.OK() {
			continue
		}
		switch p := &r.Parts[0]; {
		case r.Op == proto.OpCreate && p.Mode.Sequential():
			owner[baseName(p.Made)] = r.Client
		case r.Op == proto.OpGetChildren2 && len(p.Children) > 0:
			lowest := slices.Min(p.Children)
			if owner[lowest] == r.Client && grants[lowest] == nil {
				grants[lowest] = &grant{token: lowest, saw: r}
				inOrder = append(inOrder, grants[lowest])
			}
		case r.Op == proto.OpDelete:
			if g := grants[baseName(p.Path)]; g != nil {
				g.back = r
			}
		}
	}
	slices.SortFunc(inOrder, func(a, b *grant) int { return cmp.Compare(a.saw.Return, b.saw.Return) })
	for i, a := range inOrder {
		for _, b := range inOrder[i+1:] {
			if a.saw.Return < b.saw.Call && b.token <= a.token {
				found(fmt.Sprintf("the lock was taken with the token %s after %s", b.token, a.token), a.saw, b.saw)
			}
			first, second := a, b
			if b.token < a.token {
				first, second = b, a
			}
			if first.back != nil && first.back.Call > second.saw.Return {
				found(fmt.Sprintf("the lock was taken with the token %s while %s held it", second.token, first.token), first.saw, second.saw, first.back)
			}
		}
	}
}
