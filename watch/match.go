package watch

import (
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Match appends to dst the connections that must be told about an event, each at most once (T2),
// and removes the one-shot watches that matched (T1).
//
//	Created, DataChanged  data and persistent watches on the path; recursive watches on the path and
//	                      on its ancestors
//	Deleted               the same, and child watches on the path
//	ChildrenChanged       child and persistent watches on the path, never recursive watches
//
// The order depends only on the order of the calls, never on the order of a map. The path is not
// retained. Match allocates nothing if dst has room.
func (t *Table) Match(dst []ConnID, ev proto.EventType, path string) []ConnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
	if ev == proto.EventChildrenChanged {
		return t.trigger(dst, path, childList)
	}
	dst = t.trigger(dst, path, dataList)
	if ev == proto.EventDeleted {
		dst = t.trigger(dst, path, childList)
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

// trigger appends the connections that watch the path itself. Every event that uses a list concerns
// every mode that the list can hold, so no entry is left out.
func (t *Table) trigger(dst []ConnID, path string, k listKind) []ConnID {
	p, ok := t.paths[path]
	if !ok {
		return dst
	}
	l := t.path.At(p).lists[k]
	for e, left := l.head, l.n; left > 0; left-- {
		next := t.entry.At(e).next[ofPath]
		dst = t.notify(dst, e)
		t.clear(e, t.entry.At(e).modes&oneShot) // may release e, and with the last entry the path
		e = next
	}
	return dst
}

// recursiveOn appends the connections that watch path and all znodes below it. Their entries come
// first in the list.
func (t *Table) recursiveOn(dst []ConnID, path string) []ConnID {
	p, ok := t.paths[path]
	if !ok {
		return dst
	}
	l := t.path.At(p).lists[dataList]
	for e, left := l.head, l.n; left > 0 && t.entry.At(e).modes&PersistentRecursive != 0; left-- {
		dst = t.notify(dst, e)
		e = t.entry.At(e).next[ofPath]
	}
	return dst
}

// notify appends the connection of e, once per round.
func (t *Table) notify(dst []ConnID, e uint32) []ConnID {
	c := t.conn.At(t.entry.At(e).conn)
	if c.round == t.round {
		return dst
	}
	c.round = t.round
	return append(dst, c.id)
}
