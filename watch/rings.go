package watch

// linkPath adds e to the ring of its path, and to the index of the list if the list is longer than
// maxScan.
func (t *Table) linkPath(e uint32) {
	en := t.entry.at(e)
	t.ringLink(e)
	key := listID{en.path, en.kind}
	switch l := t.path.at(en.path).lists[en.kind]; {
	case l.n == maxScan+1:
		m := make(map[uint32]uint32, 2*maxScan)
		for i, left := l.head, l.n; left > 0; left-- {
			m[t.entry.at(i).conn] = i
			i = t.entry.at(i).pathNext
		}
		t.indexes[key] = m
	case l.n > maxScan:
		t.indexes[key][en.conn] = e
	}
}

// unlinkPath undoes linkPath.
func (t *Table) unlinkPath(e uint32) {
	en := t.entry.at(e)
	t.ringUnlink(e)
	key := listID{en.path, en.kind}
	switch n := t.path.at(en.path).lists[en.kind].n; {
	case n == maxScan:
		delete(t.indexes, key)
	case n > maxScan:
		delete(t.indexes[key], en.conn)
	}
}

// ringLink adds e to the ring of its path: a recursive entry at the beginning, any other at the
// end.
func (t *Table) ringLink(e uint32) {
	en := t.entry.at(e)
	l := &t.path.at(en.path).lists[en.kind]
	l.n++
	if l.n == 1 {
		l.head, en.pathPrev, en.pathNext = e, e, e
		return
	}
	head := t.entry.at(l.head) // the end of a ring precedes its head
	en.pathPrev, en.pathNext = head.pathPrev, l.head
	t.entry.at(head.pathPrev).pathNext = e
	head.pathPrev = e
	if en.modes&PersistentRecursive != 0 {
		l.head = e
	}
}

func (t *Table) ringUnlink(e uint32) {
	en := t.entry.at(e)
	l := &t.path.at(en.path).lists[en.kind]
	l.n--
	if l.n == 0 {
		l.head = 0
		return
	}
	if l.head == e {
		l.head = en.pathNext
	}
	t.entry.at(en.pathPrev).pathNext = en.pathNext
	t.entry.at(en.pathNext).pathPrev = en.pathPrev
}

func (t *Table) linkConn(e uint32) {
	en := t.entry.at(e)
	c := t.conn.at(en.conn)
	c.n++
	if c.n == 1 {
		c.head, en.connPrev, en.connNext = e, e, e
		return
	}
	head := t.entry.at(c.head)
	en.connPrev, en.connNext = head.connPrev, c.head
	t.entry.at(head.connPrev).connNext = e
	head.connPrev = e
}

func (t *Table) unlinkConn(e uint32) {
	en := t.entry.at(e)
	c := t.conn.at(en.conn)
	c.n--
	if c.n == 0 {
		c.head = 0
		return
	}
	if c.head == e {
		c.head = en.connNext
	}
	t.entry.at(en.connPrev).connNext = en.connNext
	t.entry.at(en.connNext).connPrev = en.connPrev
}
