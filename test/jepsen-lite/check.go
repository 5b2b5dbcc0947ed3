package jepsenlite

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// An Anomaly is a promise that a history breaks.
type Anomaly struct {
	Check   string  // which one
	What    string  // in words
	Records []int64 // Seq of the records that show it
}

// String returns the anomaly on one line.
func (a Anomaly) String() string {
	return fmt.Sprintf("%s: %s (records %v)", a.Check, a.What, a.Records)
}

// A check looks for one kind of anomaly in the history of a round, in order of Seq.
type check struct {
	name string
	find func(h []*Record, found func(what string, records ...*Record))
}

// Check runs all checks over the history of a round. The anomalies are in no promised order; of each check there are at
// most maxFound, because one broken promise mostly breaks in many places.
func Check(h []*Record) []Anomaly {
	var all []Anomaly
	for _, c := range checks() {
		all = append(all, c.run(h)...)
	}
	return all
}

const maxFound = 20

func (c check) run(h []*Record) []Anomaly {
	var all []Anomaly
	c.find(h, func(what string, records ...*Record) {
		if len(all) == maxFound {
			return
		}
		a := Anomaly{Check: c.name, What: what}
		for _, r := range records {
			a.Records = append(a.Records, r.Seq)
		}
		all = append(all, a)
	})
	return all
}

func checks() []check {
	return []check{
		{"zxid-order", findZxidOrder},
		{"session-zxid", findSessionZxid},
		{"set", findSet},
	}
}

// findZxidOrder: writes that follow each other have rising zxids, whoever asks whichever server, no two share one, and a
// synced read is at least as new as every write that was answered before the sync was sent.
func findZxidOrder(h []*Record, found func(string, ...*Record)) {
	// By the time of a call, the newest write that was answered before it.
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

// findSessionZxid: what a session gets never goes back to an older state, also when it moves to another server.
func findSessionZxid(h []*Record, found func(string, ...*Record)) {
	last := map[proto.SessionID]*Record{}
	for _, r := range h {
		if !r.Answered() || r.Zxid <= 0 || r.Op == proto.OpAuth {
			continue
		}
		if l := last[r.Session]; l != nil && l.Zxid > r.Zxid {
			found(fmt.Sprintf("session %v got %v after %v", r.Session, r.Zxid, l.Zxid), l, r)
		}
		last[r.Session] = r
	}
}

// findSet: what was added and acknowledged before a synced list was asked for is in it, and what is in it was asked for
// before it came.
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

// isOf reports whether a record is a request of a load's clients.
func isOf(r *Record, load string) bool {
	return r.Kind == KindReply && strings.HasPrefix(r.Client, load+"-") && len(r.Parts) > 0
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
