package jepsenlite

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// An armed watch was set on a connection's server and has not fired yet.
type armed struct {
	by      *Record
	sent    time.Duration // when it was requested: reads sent before promise nothing
	existed bool
	zxid    proto.Zxid // a newer change, of the data or the children, must fire it
}

// watchTable holds the armed watches of a connection, as its server should have them.
type watchTable struct {
	data, child map[string]armed
	// Of a setWatches without a reply yet. The server reports at once what changed since the
	// request's zxid, list by list, and leaves watches of other requests alone.
	againData, againChild map[string]armed
}

func newWatchTable() *watchTable {
	return &watchTable{data: map[string]armed{}, child: map[string]armed{}, againData: map[string]armed{}, againChild: map[string]armed{}}
}

// findWatch: an event comes before any read on its connection that shows the change, and only for
// an armed watch, so never twice. The load's final reads show changes whose event never came.
func findWatch(h []*Record, found func(string, ...*Record)) {
	tables := map[int]*watchTable{}
	for _, step := range watchSteps(h) {
		r := step.r
		t := tables[r.Conn]
		if t == nil {
			t = newWatchTable()
			tables[r.Conn] = t
		}
		switch {
		case r.Kind == KindEvent:
			if !t.fire(r) {
				found(fmt.Sprintf("%v of %s for no watch that is armed", r.Event, r.Path()), r)
			}
		case step.sent:
			t.setAgain(r)
		case r.Op == proto.OpSetWatches || r.Op == proto.OpSetWatches2:
			t.setDone()
		default:
			if a, what := t.missed(r); a != nil {
				found(fmt.Sprintf("a read of %s shows %s, and no event came before", r.Path(), what), a.by, r)
			}
			if r.Watch {
				t.arm(r)
			}
		}
	}
}

// A watchStep is a record at the time at which it affects watches.
type watchStep struct {
	r    *Record
	at   time.Duration
	sent bool // a setWatches when it is sent: its events come before its reply
}

// watchSteps returns the steps in order.
func watchSteps(h []*Record) []watchStep {
	var steps []watchStep
	for _, r := range h {
		switch {
		case r.Kind == KindEvent:
			steps = append(steps, watchStep{r: r, at: r.Return})
		case r.Kind == KindReply && (r.Op == proto.OpSetWatches || r.Op == proto.OpSetWatches2):
			steps = append(steps, watchStep{r: r, at: r.Call, sent: true})
			if r.Answered() {
				steps = append(steps, watchStep{r: r, at: r.Return})
			}
		case r.Answered() && (r.Op == proto.OpGetData || r.Op == proto.OpExists || r.Op == proto.OpGetChildren2):
			steps = append(steps, watchStep{r: r, at: r.Return})
		}
	}
	slices.SortStableFunc(steps, func(a, b watchStep) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// fire removes the watches that an event fires, or returns false if none was armed.
func (t *watchTable) fire(r *Record) bool {
	take := func(tables ...map[string]armed) (some bool) {
		for _, table := range tables {
			_, there := table[r.Path()]
			delete(table, r.Path())
			some = some || there
		}
		return some
	}
	switch r.Event {
	case proto.EventCreated, proto.EventDataChanged:
		return take(t.againData) || take(t.data)
	case proto.EventChildrenChanged:
		return take(t.againChild) || take(t.child)
	case proto.EventDeleted:
		// A deletion is reported once for data and child watches together, but once for each list
		// of a setWatches.
		return take(t.againData) || take(t.againChild) || take(t.data, t.child)
	}
	return false
}

// arm adds the watch of a read. An older armed watch stays, because changes since it must be
// reported.
func (t *watchTable) arm(r *Record) {
	p := &r.Parts[0]
	table, zxid := t.data, p.Stat.Mzxid
	if r.Op == proto.OpGetChildren2 {
		table, zxid = t.child, p.Stat.Pzxid
	}
	if r.Err != proto.OK {
		if r.Op != proto.OpExists || r.Err != proto.ErrNoNode {
			return // a read of a missing znode sets no watch, except for exists
		}
		zxid = r.Zxid
	}
	if _, there := table[p.Path]; !there {
		table[p.Path] = armed{by: r, sent: r.Call, existed: r.Err == proto.OK, zxid: zxid}
	}
}

// setAgain adds the watches that a client restores on a new connection.
func (t *watchTable) setAgain(r *Record) {
	add := func(table map[string]armed, paths []string, existed bool) {
		for _, p := range paths {
			table[p] = armed{by: r, sent: r.Call, existed: existed, zxid: r.Relative}
		}
	}
	add(t.againData, r.Data, true)
	add(t.againData, r.Exist, false)
	add(t.againChild, r.Child, true)
}

// setDone handles the reply to setWatches: unreported watches are armed like any other.
func (t *watchTable) setDone() {
	move := func(to, from map[string]armed) {
		for p, a := range from {
			if _, there := to[p]; !there {
				to[p] = a
			}
		}
		clear(from)
	}
	move(t.data, t.againData)
	move(t.child, t.againChild)
}

// missed returns an armed watch whose change a read shows, and a description.
func (t *watchTable) missed(r *Record) (*armed, string) {
	table := t.data
	if r.Op == proto.OpGetChildren2 {
		table = t.child
	}
	p := &r.Parts[0]
	a, ok := table[p.Path]
	if !ok || r.Call < a.sent {
		return nil, ""
	}
	zxid := p.Stat.Mzxid
	if r.Op == proto.OpGetChildren2 {
		zxid = p.Stat.Pzxid
	}
	switch {
	case r.Err == proto.ErrNoNode && a.existed:
		return &a, "that it is gone"
	case r.Err == proto.OK && zxid > a.zxid:
		return &a, fmt.Sprintf("a change of %v, newer than %v", zxid, a.zxid)
	}
	return nil, ""
}
