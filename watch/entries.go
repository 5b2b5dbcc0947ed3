package watch

import "strings"

// listKind names one of ZooKeeper's two watch tables. A persistent watch is in both tables, a
// recursive watch only in the first.
type listKind uint8

const (
	dataList listKind = iota
	childList
	listKinds
)

const (
	inData  = Data | Persistent | PersistentRecursive
	inChild = Child | Persistent
	oneShot = Data | Child
)

// maxScan is the length of the longest list that is searched from its head. A longer list has a map
// in Table.indexes, so that no operation gets slower with many watchers. Nearly all lists are short
// and need no map.
const maxScan = 8

type listID struct {
	path uint32
	kind listKind
}

// entry holds the modes of a connection on a path in one of the two tables. An entry is in two
// rings: that of its path, and that of its connection.
type entry struct {
	conn, path uint32
	prev, next [sides]uint32
	kind       listKind
	modes      Kind
}

// pathRecord holds the watches on a path. Invariant: in a list, recursive entries come first.
type pathRecord struct {
	path  string
	lists [listKinds]ring
}

type connRecord struct {
	id    ConnID
	round uint64 // the last Match that reported it
	all   ring
	nData uint32 // entries of the data table
	bytes int64  // of its entries and their paths, also of those that others watch too
}

// entryBytes and pathBytes are about the memory of an entry, and of a path without its text.
const (
	entryBytes = 56
	pathBytes  = 104
)

// get returns the modes of c on path, none if there is no entry.
func (t *Table) get(c ConnID, path string, k listKind) Kind {
	if e := t.find(c, path, k); e != 0 {
		return t.entry.At(e).modes
	}
	return 0
}

func (t *Table) find(c ConnID, path string, k listKind) uint32 {
	cn, ok := t.conns[c]
	if !ok {
		return 0
	}
	p, ok := t.paths[path]
	if !ok {
		return 0
	}
	return t.findEntry(cn, p, k)
}

func (t *Table) findEntry(cn, p uint32, k listKind) uint32 {
	l := t.path.At(p).lists[k]
	if l.n > maxScan {
		return t.indexes[listID{p, k}][cn]
	}
	for e, left := l.head, l.n; left > 0; left-- {
		if t.entry.At(e).conn == cn {
			return e
		}
		e = t.entry.At(e).next[ofPath]
	}
	return 0
}

// put adds modes to the entry of c on path, and makes the entry if there is none.
func (t *Table) put(c ConnID, path string, k listKind, modes Kind) {
	cn, ok := t.conns[c]
	if !ok {
		n, r := t.conn.Alloc()
		r.id = c
		cn, t.conns[c] = n, n
	}
	p, ok := t.paths[path]
	if !ok {
		n, r := t.path.Alloc()
		r.path = strings.Clone(path)
		p, t.paths[r.path] = n, n
		t.bytes.Add(int64(pathBytes + len(path)))
	}
	e := t.findEntry(cn, p, k)
	if e == 0 {
		n, r := t.entry.Alloc()
		e, *r = n, entry{conn: cn, path: p, kind: k, modes: modes}
		t.link(&t.conn.At(cn).all, ofConn, e)
		t.linkPath(e)
		t.count(e, 1)
	} else {
		en := t.entry.At(e)
		was := en.modes
		if was|modes == was {
			return
		}
		en.modes |= modes
		if (was^en.modes)&PersistentRecursive == 0 {
			return
		}
		t.reorder(e)
	}
	if modes&PersistentRecursive != 0 {
		t.recursive++
	}
}

// clear removes modes from e, which must have all of them. An entry without a mode is removed, and
// so is a path or connection without an entry (T4).
func (t *Table) clear(e uint32, modes Kind) {
	en := t.entry.At(e)
	en.modes &^= modes
	if modes&PersistentRecursive != 0 {
		t.recursive--
	}
	if en.modes != 0 {
		if modes&PersistentRecursive != 0 {
			t.reorder(e)
		}
		return
	}
	t.unlinkPath(e)
	t.unlink(&t.conn.At(en.conn).all, ofConn, e)
	t.count(e, -1)
	p, cn := en.path, en.conn
	t.entry.Free(e)
	if pn := t.path.At(p); pn.lists == [listKinds]ring{} {
		delete(t.paths, pn.path)
		t.bytes.Add(-int64(pathBytes + len(pn.path)))
		t.path.Free(p)
	}
	if c := t.conn.At(cn); c.all.n == 0 {
		delete(t.conns, c.id)
		t.conn.Free(cn)
	}
}

// count updates the counters of Empty and Stats. by is +1 after e was linked, -1 after unlinking.
func (t *Table) count(e uint32, by int) {
	t.entries.Add(int64(by))
	en := t.entry.At(e)
	t.bytes.Add(int64(by * entryBytes))
	t.conn.At(en.conn).bytes += int64(by * (entryBytes + pathBytes + len(t.path.At(en.path).path)))
	if en.kind != dataList {
		return
	}
	t.dataEntries += by
	c := t.conn.At(en.conn)
	c.nData += uint32(by)
	// The first entry changes that from 0 to 1, the last from 1 to 0: the result is max(by, 0).
	if c.nData == uint32(max(by, 0)) {
		t.dataConns += by
	}
	if t.path.At(en.path).lists[dataList].n == uint32(max(by, 0)) {
		t.dataPaths += by
	}
}
