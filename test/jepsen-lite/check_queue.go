package jepsenlite

import (
	"path"

	"github.com/gozkd/gozkd/proto"
)

// findQueue: an item is taken at most once, an item that nobody took is there in the end, and
// nobody takes an item that was not put.
func findQueue(h []*Record, found func(string, ...*Record)) {
	put := map[string]*Record{}  // by the path returned
	data := map[string]*Record{} // by data, which is unique; also without a reply
	taken := map[string]*Record{}
	tried := map[string]bool{} // deletes without a reply
	var last *Record           // the last synced list
	for _, r := range h {
		if !isOf(r, loadQueue) {
			continue
		}
		switch p := &r.Parts[0]; {
		case r.Op == proto.OpCreate && p.Mode.Sequential():
			data[p.Data] = r
			if r.OK() {
				put[p.Made] = r
			}
		case r.Op == proto.OpDelete && r.OK():
			if other := taken[p.Path]; other != nil {
				found(p.Path+" was taken out twice", other, r)
			}
			taken[p.Path] = r
		case r.Op == proto.OpDelete && !r.Answered():
			tried[p.Path] = true
		case r.Op == proto.OpGetChildren2 && r.OK() && r.Synced != 0:
			last = r
		}
	}
	// A request without a reply is recorded when its connection ends, possibly after a client read
	// its result.
	for _, r := range h {
		if isOf(r, loadQueue) && r.Op == proto.OpGetData && r.OK() && data[r.Parts[0].Got] == nil {
			found(r.Path()+" holds what nobody put in", r)
		}
	}
	if last == nil {
		return
	}
	there := map[string]bool{}
	for _, name := range last.Parts[0].Children {
		p := path.Join(last.Path(), name)
		there[p] = true
		if t := taken[p]; t != nil && t.Return < last.Synced {
			found(p+" is there although it was taken out", t, last)
		}
	}
	for p, r := range put {
		if !there[p] && taken[p] == nil && !tried[p] && r.Return < last.Synced {
			found(p+" is gone, and nobody took it out", r, last)
		}
	}
}
