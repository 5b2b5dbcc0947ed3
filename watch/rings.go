package watch

type ring struct{ head, n uint32 }

type side uint8

const (
	ofPath side = iota
	ofConn
	sides
)

// link adds e at the end of r.
func (t *Table) link(r *ring, s side, e uint32) {
	en := t.entry.At(e)
	r.n++
	if r.n == 1 {
		r.head, en.prev[s], en.next[s] = e, e, e
		return
	}
	head := t.entry.At(r.head) // the end of a ring precedes its head
	en.prev[s], en.next[s] = head.prev[s], r.head
	t.entry.At(head.prev[s]).next[s] = e
	head.prev[s] = e
}

func (t *Table) unlink(r *ring, s side, e uint32) {
	en := t.entry.At(e)
	r.n--
	if r.n == 0 {
		r.head = 0
		return
	}
	if r.head == e {
		r.head = en.next[s]
	}
	t.entry.At(en.prev[s]).next[s] = en.next[s]
	t.entry.At(en.next[s]).prev[s] = en.prev[s]
}

// join adds e to the list of its path: a recursive entry at the beginning, any other at the end.
func (t *Table) join(e uint32) {
	en := t.entry.At(e)
	l := &t.path.At(en.path).lists[en.kind]
	t.link(l, ofPath, e)
	if en.modes&PersistentRecursive != 0 {
		l.head = e
	}
}

// reorder puts e where it belongs in the list of its path after its modes have changed.
func (t *Table) reorder(e uint32) {
	en := t.entry.At(e)
	t.unlink(&t.path.At(en.path).lists[en.kind], ofPath, e)
	t.join(e)
}

// linkPath adds e to the ring of its path, and the list's index if it is longer than maxScan.
func (t *Table) linkPath(e uint32) {
	en := t.entry.At(e)
	t.join(e)
	key := listID{en.path, en.kind}
	switch l := t.path.At(en.path).lists[en.kind]; {
	case l.n == maxScan+1:
		m := make(map[uint32]uint32, 2*maxScan)
		for i, left := l.head, l.n; left > 0; left-- {
			m[t.entry.At(i).conn] = i
			i = t.entry.At(i).next[ofPath]
		}
		t.indexes[key] = m
	case l.n > maxScan:
		t.indexes[key][en.conn] = e
	}
}

func (t *Table) unlinkPath(e uint32) {
	en := t.entry.At(e)
	t.unlink(&t.path.At(en.path).lists[en.kind], ofPath, e)
	key := listID{en.path, en.kind}
	switch n := t.path.At(en.path).lists[en.kind].n; {
	case n == maxScan:
		delete(t.indexes, key)
	case n > maxScan:
		delete(t.indexes[key], en.conn)
	}
}
