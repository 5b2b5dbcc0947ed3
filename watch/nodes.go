package watch

import "strings"

// side is one of ZooKeeper's two tables. A persistent watch stands in both, a recursive one in the first alone.
type side uint8

const (
	data side = iota
	child
	sides
)

const (
	inData  = Data | Persistent | PersistentRecursive
	inChild = Child | Persistent
	oneShot = Data | Child
)

// maxScan is the longest list that is searched from its head. A longer one has a map beside it (a crowd), so that no
// operation costs more with many watchers; the short ones, which are nearly all, pay for no map.
const maxScan = 8

type crowd struct {
	path uint32
	side side
}

// entry is what one connection watches on one path in one of the tables. It is in two rings: of its path, and of its
// connection.
type entry struct {
	conn, path         uint32
	pathPrev, pathNext uint32
	connPrev, connNext uint32
	side               side
	modes              Kind
}

// list is a ring of n entries. Invariant: recursive entries come first.
type list struct{ head, n uint32 }

type pathNode struct {
	path  string
	lists [sides]list
}

type connNode struct {
	id    ConnID
	round uint64 // the last Match that reported it
	head  uint32
	n     uint32 // entries
	nData uint32 // those of the data table
}

// get returns the modes of c on path, none if there is no entry.
func (t *Table) get(c ConnID, path string, s side) Kind {
	if e := t.find(c, path, s); e != 0 {
		return t.entry.at(e).modes
	}
	return 0
}

func (t *Table) find(c ConnID, path string, s side) uint32 {
	cn, ok := t.conns[c]
	if !ok {
		return 0
	}
	p, ok := t.paths[path]
	if !ok {
		return 0
	}
	return t.findNode(cn, p, s)
}

func (t *Table) findNode(cn, p uint32, s side) uint32 {
	l := t.path.at(p).lists[s]
	if l.n > maxScan {
		return t.crowds[crowd{p, s}][cn]
	}
	for e, left := l.head, l.n; left > 0; left-- {
		if t.entry.at(e).conn == cn {
			return e
		}
		e = t.entry.at(e).pathNext
	}
	return 0
}

// put adds modes to the entry of c on path, which it makes if need be.
func (t *Table) put(c ConnID, path string, s side, modes Kind) {
	cn, ok := t.conns[c]
	if !ok {
		cn = t.conn.alloc()
		*t.conn.at(cn) = connNode{id: c}
		t.conns[c] = cn
	}
	p, ok := t.paths[path]
	if !ok {
		path = strings.Clone(path)
		p = t.path.alloc()
		*t.path.at(p) = pathNode{path: path}
		t.paths[path] = p
	}
	e := t.findNode(cn, p, s)
	if e == 0 {
		e = t.entry.alloc()
		*t.entry.at(e) = entry{conn: cn, path: p, side: s, modes: modes}
		t.linkConn(e)
		t.linkPath(e)
		t.count(e, 1)
	} else {
		en := t.entry.at(e)
		was := en.modes
		if was|modes == was {
			return
		}
		en.modes |= modes
		if (was^en.modes)&PersistentRecursive == 0 {
			return
		}
		t.ringUnlink(e)
		t.ringLink(e)
	}
	if modes&PersistentRecursive != 0 {
		t.recursive++
	}
}

// clear takes modes, all of which e has, away from it; with its last mode the entry goes, and with their last entry its
// path and its connection (T4).
func (t *Table) clear(e uint32, modes Kind) {
	en := t.entry.at(e)
	en.modes &^= modes
	if modes&PersistentRecursive != 0 {
		t.recursive--
	}
	if en.modes != 0 {
		if modes&PersistentRecursive != 0 {
			t.ringUnlink(e)
			t.ringLink(e)
		}
		return
	}
	t.unlinkPath(e)
	t.unlinkConn(e)
	t.count(e, -1)
	p, cn := en.path, en.conn
	t.entry.release(e)
	if pn := t.path.at(p); pn.lists == [sides]list{} {
		delete(t.paths, pn.path)
		t.path.release(p)
	}
	if c := t.conn.at(cn); c.n == 0 {
		delete(t.conns, c.id)
		t.conn.release(cn)
	}
}

// count keeps the figures of Empty and Stats; by is +1 after e was linked or -1 after it was unlinked.
func (t *Table) count(e uint32, by int) {
	t.entries.Add(int64(by))
	en := t.entry.at(e)
	if en.side != data {
		return
	}
	t.dataEntries += by
	c := t.conn.at(en.conn)
	c.nData += uint32(by)
	// Whether this was the first of its kind, or the last, shows in the number of the larger of the two states.
	if c.nData == uint32(max(by, 0)) {
		t.dataConns += by
	}
	if t.path.at(en.path).lists[data].n == uint32(max(by, 0)) {
		t.dataPaths += by
	}
}
