package jepsenlite

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
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
	watches
	// again are those of each setWatches without a reply yet, in the order of the requests. The
	// server reports what changed since the zxid of a request before its reply, list by list, and
	// leaves watches of other requests alone. go-zookeeper may send two on a connection: the
	// goroutine that sends them after a reconnect can outlive its connection.
	again   []watches
	follows bool // findReplay checks the events
	// The watches that fired, until a read shows the change that the event reported.
	firedData, firedChild map[string]fired
}

// watches are armed watches by their paths.
type watches struct{ data, child map[string]armed }

// A fired watch reported a change that is newer than its zxid.
type fired struct {
	armed
	event *Record
}

func newWatchTable() *watchTable {
	return &watchTable{
		watches:   watches{map[string]armed{}, map[string]armed{}},
		firedData: map[string]fired{}, firedChild: map[string]fired{},
	}
}

// findWatch: an event comes before any reply on its connection that shows the change, be it to a
// read or to the connection's own write, and only for an armed watch, so never twice. It reports a
// change that is newer than what the watch was set on: the next read shows the change. The load's
// final reads show changes whose event never came.
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
			if !t.follows && !t.fire(r) {
				found(fmt.Sprintf("%v of %s for no watch that is armed", r.Event, r.Path()), r)
			}
		case step.sent:
			t.follows = t.follows || len(r.Recursive) > 0
			t.setAgain(r)
		case r.Op == proto.OpSetWatches || r.Op == proto.OpSetWatches2:
			t.setDone()
		case r.Writes():
			if a := t.overtaken(r); a != nil {
				found(fmt.Sprintf("the reply to %v of %s shows a change, and no event came before", r.Op, r.Path()), a.by, r)
			}
		default:
			if a, what := t.missed(r); a != nil {
				found(fmt.Sprintf("a read of %s shows %s, and no event came before", r.Path(), what), a.by, r)
			}
			if f := t.unchanged(r); f != nil {
				found(fmt.Sprintf("%v of %s, but a later read shows no change since %v", f.event.Event, r.Path(), f.zxid), f.by, f.event, r)
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
		case r.Writes() && r.OK() && len(r.Parts) == 1:
			steps = append(steps, watchStep{r: r, at: r.Return})
		}
	}
	slices.SortStableFunc(steps, func(a, b watchStep) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// fire removes the watches that an event fires, or returns false if none was armed.
func (t *watchTable) fire(r *Record) bool {
	path := r.Path()
	take := func(from map[string]armed, to map[string]fired) bool {
		a, ok := from[path]
		delete(from, path)
		// A setWatches reports a znode that the client missed, however old the znode is.
		if ok && a.existed {
			to[path] = fired{a, r}
		}
		return ok
	}
	var again watches
	if len(t.again) > 0 {
		again = t.again[0]
	}
	switch r.Event {
	case proto.EventCreated, proto.EventDataChanged:
		return take(again.data, t.firedData) || take(t.data, t.firedData)
	case proto.EventChildrenChanged:
		return take(again.child, t.firedChild) || take(t.child, t.firedChild)
	case proto.EventDeleted:
		// A deletion is reported once for data and child watches together, but once for each list
		// of a setWatches.
		if take(again.data, t.firedData) || take(again.child, t.firedChild) {
			return true
		}
		data, child := take(t.data, t.firedData), take(t.child, t.firedChild)
		return data || child
	}
	return false
}

// arm adds the watch of a read. An older armed watch stays, because changes since it must be
// reported.
func (t *watchTable) arm(r *Record) {
	p := &r.Parts[0]
	table, zxid := t.data, lastChange(r)
	if r.Op == proto.OpGetChildren2 {
		table = t.child
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
	again := watches{map[string]armed{}, map[string]armed{}}
	add := func(table map[string]armed, paths []string, existed bool) {
		for _, p := range paths {
			table[p] = armed{by: r, sent: r.Call, existed: existed, zxid: r.Relative}
		}
	}
	add(again.data, r.Data, true)
	add(again.data, r.Exist, false)
	add(again.child, r.Child, true)
	t.again = append(t.again, again)
}

// setDone handles the reply to setWatches: unreported watches are armed like any other.
func (t *watchTable) setDone() {
	move := func(to, from map[string]armed) {
		for p, a := range from {
			if _, there := to[p]; !there {
				to[p] = a
			}
		}
	}
	again := t.again[0] // replies are in the order of the requests
	t.again = t.again[1:]
	move(t.data, again.data)
	move(t.child, again.child)
}

// missed returns an armed watch whose change a read shows, and a description.
func (t *watchTable) missed(r *Record) (*armed, string) {
	table := t.data
	if r.Op == proto.OpGetChildren2 {
		table = t.child
	}
	a, ok := table[r.Path()]
	if !ok || r.Call < a.sent {
		return nil, ""
	}
	switch zxid := lastChange(r); {
	case r.Err == proto.ErrNoNode && a.existed:
		return &a, "that it is gone"
	case r.Err == proto.OK && zxid > a.zxid:
		return &a, fmt.Sprintf("a change of %v, newer than %v", zxid, a.zxid)
	}
	return nil, ""
}

// overtaken returns an armed watch that a successful write must have fired before its reply.
func (t *watchTable) overtaken(r *Record) *armed {
	late := func(table map[string]armed, path string) *armed {
		if a, ok := table[path]; ok && r.Call >= a.sent && r.Zxid > a.zxid {
			return &a
		}
		return nil
	}
	p := &r.Parts[0]
	switch r.Op {
	case proto.OpSetData:
		return late(t.data, p.Path)
	case proto.OpCreate, proto.OpCreate2:
		return cmp.Or(late(t.data, p.Made), late(t.child, path.Dir(p.Made)))
	case proto.OpDelete:
		return cmp.Or(late(t.data, p.Path), late(t.child, p.Path), late(t.child, path.Dir(p.Path)))
	}
	return nil
}

// unchanged returns a watch that fired before the read was sent, if the read shows no change that
// is newer than the watch.
func (t *watchTable) unchanged(r *Record) *fired {
	table := t.firedData
	if r.Op == proto.OpGetChildren2 {
		table = t.firedChild
	}
	f, ok := table[r.Path()]
	if !ok || r.Call < f.event.Return {
		return nil
	}
	delete(table, r.Path())
	if r.Err == proto.OK && lastChange(r) <= f.zxid {
		return &f
	}
	return nil
}

// lastChange returns the zxid of the last change that a read shows, of the data or the children.
func lastChange(r *Record) proto.Zxid {
	if r.Op == proto.OpGetChildren2 {
		return r.Parts[0].Stat.Pzxid
	}
	return r.Parts[0].Stat.Mzxid
}

// A follower is a connection with a recursive watch.
type follower struct {
	set      *Record    // the setWatches2 with the watch
	from, to proto.Zxid // changes after from must be told before a reply shows to
}

// A change is what an event tells.
type change struct {
	zxid proto.Zxid
	typ  proto.EventType
	path string
}

// changeOf returns the change that a write makes if it succeeds.
func changeOf(r *Record) change {
	p := &r.Parts[0]
	switch r.Op {
	case proto.OpSetData:
		return change{r.Zxid, proto.EventDataChanged, p.Path}
	case proto.OpDelete:
		return change{r.Zxid, proto.EventDeleted, p.Path}
	}
	return change{r.Zxid, proto.EventCreated, cmp.Or(p.Made, p.Path)}
}

// findReplay: a client with a recursive watch is told of each change below, once and in order. A
// setWatches2 brings the changes since the zxid that it names, or the mark says that the server
// does not know them: then the changes after its reply.
func findReplay(h []*Record, found func(string, ...*Record)) {
	events, followers := map[int][]*Record{}, map[int]*follower{}
	made, possible := map[change]*Record{}, map[change]bool{} // those in possible have no zxid
	for _, r := range h {
		f, told := followers[r.Conn], events[r.Conn]
		switch {
		case r.Kind == KindEvent:
			events[r.Conn] = append(told, r)
		case len(r.Recursive) > 0 && r.OK():
			f = &follower{set: r, from: r.Zxid, to: r.Zxid}
			if n := len(told); n > 0 && told[n-1].Path() == proto.ReplayMark && told[n-1].Event == proto.EventDataChanged {
				f.from = r.Relative
			}
			followers[r.Conn] = f
		case r.Answered() && f != nil:
			f.to = max(f.to, r.Zxid)
		}
		if r.Writes() && len(r.Parts) == 1 {
			if c := changeOf(r); r.OK() {
				made[c] = r
			} else if c.zxid = 0; !r.Answered() {
				possible[c] = true
			}
		}
	}
	for conn, f := range followers {
		told, last := map[change]*Record{}, f.from
		for _, e := range events[conn] {
			c := change{e.Zxid, e.Event, e.Path()}
			switch {
			case c.path == proto.ReplayMark:
				continue
			case c.zxid < last, c.zxid == f.from:
				found(fmt.Sprintf("%v of %s of %v after the client knew all up to %v", c.typ, c.path, c.zxid, last), f.set, e)
			case told[c] != nil:
				found(fmt.Sprintf("%v of %s of %v twice", c.typ, c.path, c.zxid), f.set, told[c], e)
			case made[c] == nil && !possible[change{0, c.typ, c.path}]:
				found(fmt.Sprintf("%v of %s of %v, which nobody changed", c.typ, c.path, c.zxid), f.set, e)
			}
			told[c], last = e, max(last, c.zxid)
		}
		for c, r := range made {
			if strings.HasPrefix(c.path, f.set.Recursive[0]+"/") && c.zxid > f.from && c.zxid <= f.to && told[c] == nil {
				found(fmt.Sprintf("%v of %s of %v was not told, although a reply shows %v", c.typ, c.path, c.zxid, f.to), f.set, r)
			}
		}
	}
}
