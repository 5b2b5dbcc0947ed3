package jepsenlite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// findZxidOrder: writes that follow each other have rising zxids across all clients and servers, no
// two share a zxid, and a synced read is at least as new as every write answered before the sync
// was sent.
func findZxidOrder(h []*Record, found func(string, ...*Record)) {
	// For each call time: the newest write answered before it.
	writes := slices.DeleteFunc(slices.Clone(h), func(r *Record) bool { return !r.Writes() || !r.OK() })
	slices.SortFunc(writes, func(a, b *Record) int { return cmp.Compare(a.Return, b.Return) })
	newest := make([]*Record, len(writes)) // of writes[:i+1]
	byZxid := map[proto.Zxid]*Record{}
	for i, w := range writes {
		newest[i] = w
		if i > 0 && newest[i-1].Zxid > w.Zxid {
			newest[i] = newest[i-1]
		}
		if other := byZxid[w.Zxid]; other != nil {
			found(fmt.Sprintf("two writes have the zxid %v", w.Zxid), other, w)
		}
		byZxid[w.Zxid] = w
	}
	before := func(call int64) *Record {
		i, _ := slices.BinarySearchFunc(writes, call, func(w *Record, call int64) int { return cmp.Compare(int64(w.Return), call) })
		if i == 0 {
			return nil
		}
		return newest[i-1]
	}
	for _, r := range h {
		switch {
		case r.Writes() && r.OK():
			if w := before(int64(r.Call)); w != nil && w.Zxid >= r.Zxid {
				found(fmt.Sprintf("a write got %v after one had got %v", r.Zxid, w.Zxid), w, r)
			}
		case r.Synced != 0:
			if w := before(int64(r.Synced)); w != nil && w.Zxid > r.Zxid {
				found(fmt.Sprintf("a synced read saw %v after a write had got %v", r.Zxid, w.Zxid), w, r)
			}
		}
	}
}

// findReplyOrder: the requests of a connection are answered in the order in which they were sent,
// none is left out, and there is no reply without a request.
func findReplyOrder(h []*Record, found func(string, ...*Record)) {
	last := map[int]*Record{} // by connection
	for _, r := range h {
		if !r.Answered() {
			continue
		}
		if r.Number == 0 {
			found(fmt.Sprintf("a reply with the xid %d, which nobody waits for", r.Xid), r)
			continue
		}
		switch l := last[r.Conn]; {
		case l == nil && r.Number != 1:
			found(fmt.Sprintf("the first reply on connection %d is to request %d", r.Conn, r.Number), r)
		case l != nil && r.Number != l.Number+1:
			found(fmt.Sprintf("the reply to request %d of connection %d follows that to %d", r.Number, r.Conn, l.Number), l, r)
		}
		last[r.Conn] = r
	}
}
