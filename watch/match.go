package watch

import (
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Match appends to dst the connections that are to be told of one event, each at most once (T2), and takes away the
// one-shot watches that it used (T1).
//
//	Created, DataChanged  data and persistent watches on the path, recursive ones on it and on its ancestors
//	Deleted               these, and child watches on the path
//	ChildrenChanged       child and persistent watches on the path, never recursive ones
//
// The order follows from the calls alone, never from the order of a map. The path is not kept. Nothing is allocated if
// dst has room.
func (t *Table) Match(dst []ConnID, ev proto.EventType, path string) []ConnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
	if ev == proto.EventChildrenChanged {
		return t.trigger(dst, path, child)
	}
	dst = t.trigger(dst, path, data)
	if ev == proto.EventDeleted {
		dst = t.trigger(dst, path, child)
	}
	for t.recursive > 0 && len(path) > 1 {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		if path == "" {
			path = "/"
		}
		dst = t.recursiveOn(dst, path)
	}
	return dst
}

// trigger appends who watches the path itself. Every mode that can stand in a list concerns every event that asks for
// the list, so there is nothing to select.
func (t *Table) trigger(dst []ConnID, path string, s side) []ConnID {
	p, ok := t.paths[path]
	if !ok {
		return dst
	}
	l := t.path.at(p).lists[s]
	for e, left := l.head, l.n; left > 0; left-- {
		next := t.entry.at(e).pathNext
		dst = t.notify(dst, e)
		t.clear(e, t.entry.at(e).modes&oneShot) // may free e, and with the last entry the path
		e = next
	}
	return dst
}

// recursiveOn appends who watches path with all below it: they stand first in the list.
func (t *Table) recursiveOn(dst []ConnID, path string) []ConnID {
	p, ok := t.paths[path]
	if !ok {
		return dst
	}
	l := t.path.at(p).lists[data]
	for e, left := l.head, l.n; left > 0 && t.entry.at(e).modes&PersistentRecursive != 0; left-- {
		dst = t.notify(dst, e)
		e = t.entry.at(e).pathNext
	}
	return dst
}

// notify appends the connection of e, once in a round.
func (t *Table) notify(dst []ConnID, e uint32) []ConnID {
	c := t.conn.at(t.entry.at(e).conn)
	if c.round == t.round {
		return dst
	}
	c.round = t.round
	return append(dst, c.id)
}
