package jepsenlite

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// A watcher writes the history of one connection to one znode, /k, with a request after the other.
type watcher struct {
	line
	now int
}

// get reads the data with zxid mzxid; 0: it is not there.
func (w *watcher) get(watch bool, mzxid proto.Zxid) { w.read(proto.OpGetData, watch, mzxid) }

// children reads the children, which last changed with zxid pzxid.
func (w *watcher) children(watch bool, pzxid proto.Zxid) { w.read(proto.OpGetChildren2, watch, pzxid) }

// exists is get for exists, which also watches what is not there; the server is at zxid 5 then.
func (w *watcher) exists(watch bool, mzxid proto.Zxid) { w.read(proto.OpExists, watch, mzxid) }

func (w *watcher) read(op proto.OpCode, watch bool, zxid proto.Zxid) {
	w.now += 10
	w.op("watch-0", op, "/k", w.now, w.now+5, func(r *Record) {
		r.Watch, r.Zxid = watch, 5
		r.Parts[0].Stat.Mzxid, r.Parts[0].Stat.Pzxid = zxid, zxid
		if zxid == 0 {
			r.Err = proto.ErrNoNode
		}
	})
}

// write changes the znode, its data or its children, in transaction zxid.
func (w *watcher) write(op proto.OpCode, path string, zxid proto.Zxid) {
	w.now += 10
	w.op("watch-0", op, path, w.now, w.now+5, func(r *Record) { r.Zxid, r.Parts[0].Made = zxid, path })
}

func (w *watcher) event(e proto.EventType) {
	w.now += 10
	w.add(Record{Kind: KindEvent, Client: "watch-0", Event: e, Parts: []Part{{Path: "/k"}}, Return: at(w.now)})
}

// again is a setWatches. Its reply is at hand after rest.
func (w *watcher) again(relative proto.Zxid, data, exist, child bool, rest func()) {
	w.now += 10
	r := Record{Client: "watch-0", Op: proto.OpSetWatches, Call: at(w.now), Relative: relative}
	path := []string{"/k"}
	if data {
		r.Data = path
	}
	if exist {
		r.Exist = path
	}
	if child {
		r.Child = path
	}
	rest()
	w.now += 10
	r.Return = at(w.now)
	w.add(r)
}

// Of two setWatches that are under way at the same time, each reports what the client missed before
// its own reply, and no more.
func TestWatch_TwoAgain(t *testing.T) {
	for events, found := range map[int]int{1: 0, 2: 1} {
		w := &watcher{now: 20}
		again := func(call, reply int) {
			w.add(Record{Client: "watch-0", Op: proto.OpSetWatches, Call: at(call), Return: at(reply), Relative: 3, Data: []string{"/k"}})
		}
		w.event(proto.EventDeleted) // at 30
		again(10, 40)
		w.now = 40
		for range events {
			w.event(proto.EventDeleted)
		}
		again(20, 70)
		n := 0
		findWatch(w.h, func(string, ...*Record) { n++ })
		if n != found {
			t.Errorf("%d events of the second one: %d anomalies, want %d", events, n, found)
		}
	}
}

func TestWatch(t *testing.T) {
	const unasked = "for no watch"
	const missed = "no event came before"
	const nothing = "shows no change since"
	for name, c := range map[string]struct {
		play func(w *watcher)
		want string
	}{
		"told, then seen": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDataChanged)
			w.get(false, 4)
		}},
		"seen, not told": {play: func(w *watcher) {
			w.get(true, 3)
			w.get(false, 4)
		}, want: missed},
		"seen before told": {play: func(w *watcher) {
			w.get(true, 3)
			w.get(false, 4)
			w.event(proto.EventDataChanged)
		}, want: missed},
		"unchanged": {play: func(w *watcher) {
			w.get(true, 3)
			w.get(true, 3)
		}},
		"told twice": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDataChanged)
			w.event(proto.EventDataChanged)
		}, want: unasked},
		"told twice, asked twice": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDataChanged)
			w.get(true, 4)
			w.event(proto.EventDataChanged)
		}},
		"asked twice, told twice for one": {play: func(w *watcher) {
			w.get(true, 3)
			w.exists(true, 3)
			w.event(proto.EventDataChanged)
			w.event(proto.EventDataChanged)
		}, want: unasked},
		"not asked": {play: func(w *watcher) {
			w.get(false, 3)
			w.event(proto.EventDataChanged)
		}, want: unasked},
		"the wrong kind": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventChildrenChanged)
		}, want: unasked},
		"gone, not told": {play: func(w *watcher) {
			w.get(true, 3)
			w.exists(false, 0)
		}, want: missed},
		"gone, told": {play: func(w *watcher) {
			w.get(true, 3)
			w.children(true, 3)
			w.event(proto.EventDeleted)
			w.exists(false, 0)
			w.children(false, 0)
		}},
		"gone, told twice": {play: func(w *watcher) {
			w.get(true, 3)
			w.children(true, 3)
			w.event(proto.EventDeleted)
			w.event(proto.EventDeleted)
		}, want: unasked},
		"appeared, not told": {play: func(w *watcher) {
			w.exists(true, 0)
			w.get(false, 7)
		}, want: missed},
		"appeared, told": {play: func(w *watcher) {
			w.exists(true, 0)
			w.event(proto.EventCreated)
			w.get(false, 7)
		}},
		"a get of what is not there sets no watch": {play: func(w *watcher) {
			w.get(true, 0)
			w.get(false, 7)
		}},
		"children, not told": {play: func(w *watcher) {
			w.children(true, 3)
			w.children(false, 4)
		}, want: missed},
		"children, told": {play: func(w *watcher) {
			w.children(true, 3)
			w.event(proto.EventChildrenChanged)
			w.children(false, 4)
		}},
		"set again, told before the reply": {play: func(w *watcher) {
			w.again(3, true, false, false, func() { w.event(proto.EventDataChanged) })
			w.get(false, 4)
		}},
		"set again, gone for data and for children": {play: func(w *watcher) {
			w.again(3, true, false, true, func() {
				w.event(proto.EventDeleted)
				w.event(proto.EventDeleted)
			})
			w.exists(false, 0)
		}},
		"set again, gone three times": {play: func(w *watcher) {
			w.again(3, true, false, true, func() {
				w.event(proto.EventDeleted)
				w.event(proto.EventDeleted)
				w.event(proto.EventDeleted)
			})
		}, want: unasked},
		"set again, gone for data only": {play: func(w *watcher) {
			w.again(3, true, false, true, func() { w.event(proto.EventDeleted) })
			w.children(false, 0)
		}, want: missed},
		"set again, gone later": {play: func(w *watcher) {
			w.again(3, true, false, true, func() {})
			w.event(proto.EventDeleted)
			w.children(false, 0)
		}},
		"set again, gone later, told twice": {play: func(w *watcher) {
			w.again(3, true, false, true, func() {})
			w.event(proto.EventDeleted)
			w.event(proto.EventDeleted)
		}, want: unasked},
		"set again beside a new one, told twice": {play: func(w *watcher) {
			w.again(3, true, false, false, func() {
				w.get(true, 4)
				w.event(proto.EventDataChanged) // of setWatches
			})
			w.event(proto.EventDataChanged) // of the new one
			w.get(false, 7)
		}},
		"set again beside a new one, told three times": {play: func(w *watcher) {
			w.again(3, true, false, false, func() {
				w.get(true, 4)
				w.event(proto.EventDataChanged)
			})
			w.event(proto.EventDataChanged)
			w.event(proto.EventDataChanged)
		}, want: unasked},
		"set again beside a new one, not told of the next change": {play: func(w *watcher) {
			w.again(3, true, false, false, func() {
				w.get(true, 4)
				w.event(proto.EventDataChanged)
			})
			w.get(false, 7)
		}, want: missed},
		"set again, not told": {play: func(w *watcher) {
			w.again(3, true, false, false, func() {})
			w.get(false, 4)
		}, want: missed},
		"set again, nothing new": {play: func(w *watcher) {
			w.again(3, true, false, false, func() {})
			w.get(false, 3)
		}},
		"set again on nothing, appeared": {play: func(w *watcher) {
			w.again(3, false, true, false, func() {})
			w.get(false, 4)
		}, want: missed},
		"set again on nothing, still nothing": {play: func(w *watcher) {
			w.again(3, false, true, false, func() {})
			w.exists(false, 0)
		}},
		"read before it was set again": {play: func(w *watcher) {
			w.op("watch-0", proto.OpGetData, "/k", 5, 50, func(r *Record) { r.Parts[0].Stat.Mzxid = 4 })
			w.again(3, true, false, false, func() {})
		}},
		"own write, told before its reply": {play: func(w *watcher) {
			w.get(true, 3)
			w.children(true, 3)
			w.event(proto.EventDataChanged)
			w.write(proto.OpSetData, "/k", 6)
			w.event(proto.EventChildrenChanged)
			w.write(proto.OpCreate, "/k/c", 7)
			w.write(proto.OpDelete, "/k/c", 8) // the watch is gone
		}},
		"own set, told after its reply": {play: func(w *watcher) {
			w.get(true, 3)
			w.write(proto.OpSetData, "/k", 6)
			w.event(proto.EventDataChanged)
		}, want: missed},
		"own create, told after its reply": {play: func(w *watcher) {
			w.exists(true, 0)
			w.write(proto.OpCreate, "/k", 6)
			w.event(proto.EventCreated)
		}, want: missed},
		"own create of a child, told after its reply": {play: func(w *watcher) {
			w.children(true, 3)
			w.write(proto.OpCreate2, "/k/c", 6)
			w.event(proto.EventChildrenChanged)
		}, want: missed},
		"own delete, told after its reply": {play: func(w *watcher) {
			w.children(true, 3)
			w.write(proto.OpDelete, "/k", 6)
			w.event(proto.EventDeleted)
		}, want: missed},
		"own write before the watch": {play: func(w *watcher) {
			w.write(proto.OpSetData, "/k", 3)
			w.get(true, 3)
		}},
		"told of no change": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDataChanged)
			w.get(false, 3)
		}, want: nothing},
		"told of no change of the children": {play: func(w *watcher) {
			w.children(true, 3)
			w.event(proto.EventChildrenChanged)
			w.children(false, 3)
		}, want: nothing},
		"told of a deletion that did not happen": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDeleted)
			w.get(false, 3)
		}, want: nothing},
		"told, then deleted": {play: func(w *watcher) {
			w.get(true, 3)
			w.event(proto.EventDataChanged)
			w.get(false, 0)
		}},
		"read under way when told": {play: func(w *watcher) {
			w.get(true, 3)
			w.op("watch-0", proto.OpGetData, "/k", w.now, w.now+20, func(r *Record) { r.Parts[0].Stat.Mzxid = 3 })
			w.event(proto.EventDataChanged)
		}},
		"set again, told of what was seen": {play: func(w *watcher) {
			w.again(4, true, false, false, func() { w.event(proto.EventDataChanged) })
			w.get(false, 4)
		}, want: nothing},
		"set again, told of children that were seen": {play: func(w *watcher) {
			w.again(4, false, false, true, func() { w.event(proto.EventChildrenChanged) })
			w.children(false, 4)
		}, want: nothing},
		"set again, not told of the first change after": {play: func(w *watcher) {
			w.again(4, false, false, true, func() {})
			w.children(false, 5)
		}, want: missed},
		"set again on nothing, told of an old znode": {play: func(w *watcher) {
			w.again(4, false, true, false, func() { w.event(proto.EventCreated) })
			w.get(false, 3)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var w watcher
			c.play(&w)
			want(t, find(t, "watch", w.h), c.want)
		})
	}
}

// Watches belong to a connection: on the next one they count only if they were set again.
func TestWatch_NextConnection(t *testing.T) {
	var w watcher
	w.get(true, 3)
	w.op("watch-0", proto.OpGetData, "/k", 30, 40, func(r *Record) { r.Conn, r.Session, r.Parts[0].Stat.Mzxid = 2, 1, 4 })
	want(t, find(t, "watch", w.h), "")
}

// The setWatches2 of a follower names zxid 3; each letter of play is a step: the changes of zxid 4
// and 5, which another client makes, the events of these, one that nobody made, the answers of the
// mark, the reply, and a later reply that shows zxid 5.
func TestReplay(t *testing.T) {
	for play, word := range map[string]string{
		"c4 c5 e4 e5 + r": "", "c4 e4 + r c5 e5 p": "", "c4 c5 - r": "", "c4 c5 r": "", // told, or not known
		"c4 c5 e4 + r": "not told", "c4 + r c5 e5 p": "not told", "c4 - r c5 p": "not told",
		"c4 c5 e4 e5 e5 + r": "twice", "c4 c5 e5 e4 + r": "after the client knew",
		"c4 e4 + r e9": "nobody changed", "u4 e4 + r": "", "c4 e4 + r e4": "twice", "c4 c5 - r e4": "after the client knew",
		"c4 e4 + r c5": "", // no later reply
	} {
		l := &line{}
		for i, step := range strings.Fields(play) {
			zxid := proto.Zxid(step[len(step)-1] - '0')
			event := Record{Kind: KindEvent, Client: "f", Event: proto.EventDataChanged, Return: at(i + 1)}
			switch event.Parts = []Part{{Path: proto.ReplayMark}}; step[0] {
			case 'c', 'u':
				l.op("w", proto.OpSetData, "/d/k", i+1, i+1, func(r *Record) { r.Conn, r.Zxid = 2, zxid })
				if step[0] == 'u' {
					l.h[len(l.h)-1].Return = 0
				}
			case 'e':
				event.Parts[0].Path, event.Zxid = "/d/k", zxid
				l.add(event)
			case '-':
				event.Event = proto.EventDeleted
				l.add(event)
			case '+':
				l.add(event)
			case 'r':
				l.add(Record{Client: "f", Op: proto.OpSetWatches2, Call: 1, Return: at(i + 1), Zxid: 5, Relative: 3, Recursive: []string{"/d"}})
				if !strings.Contains(play[:strings.Index(play, "r")], "c5") {
					l.h[len(l.h)-1].Zxid = 4
				}
			case 'p':
				l.add(Record{Client: "f", Op: proto.OpPing, Call: 1, Return: at(i + 1), Zxid: 5})
			}
		}
		t.Run(play, func(t *testing.T) { want(t, check{"replay", findReplay}.run(l.h), word) })
	}
}
