package watch

import "slices"

// Stats returns the number of connections, paths, and pairs of both in the data table, which holds
// data, persistent and recursive watches. Child watches are left out, as in ZooKeeper's four-letter
// word wchs. Stats takes constant time.
func (t *Table) Stats() (conns, paths, watches int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dataConns, t.dataPaths, t.dataEntries
}

// Len returns the number of pairs of a connection and a path in the data and child tables together.
// A persistent watch is in both and counts twice, as in ZooKeeper's watch_count. Len takes no lock.
func (t *Table) Len() int { return int(t.entries.Load()) }

// Bytes returns about how much memory the watches take. Bytes takes no lock.
func (t *Table) Bytes() int64 { return t.bytes.Load() }

// Held is about what memory a connection's watches take, as if these alone watched their paths.
type Held struct {
	Conn  ConnID
	Bytes int64
}

// Held returns all connections with watches, in any order. The caller owns the result. The cost
// is proportional to the number of connections, and all other calls wait.
func (t *Table) Held() []Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Held, 0, len(t.conns))
	for id, n := range t.conns {
		all = append(all, Held{id, t.conn.At(n).bytes})
	}
	return all
}

// ByConn returns, for each connection in the data table (see Stats), its paths, sorted. The caller
// owns the result. ByConn is for the four-letter word wchc: the cost is proportional to the number
// of watches, and all other calls wait.
func (t *Table) ByConn() map[ConnID][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[ConnID][]string, t.dataConns)
	for path, p := range t.paths {
		l := t.path.At(p).lists[dataList]
		for e, left := l.head, l.n; left > 0; left-- {
			en := t.entry.At(e)
			c := t.conn.At(en.conn).id
			m[c] = append(m[c], path)
			e = en.next[ofPath]
		}
	}
	for _, paths := range m {
		slices.Sort(paths)
	}
	return m
}

// OfConn calls yield with each path that a connection watches and the modes there, in no order,
// until yield returns false. A path with watches in both of ZooKeeper's tables can come twice. All
// other calls wait, so yield must be quick and must not call the table.
func (t *Table) OfConn(c ConnID, yield func(path string, k Kind) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.conns[c]
	if !ok {
		return
	}
	all := t.conn.At(n).all
	for e, left := all.head, all.n; left > 0; left-- {
		en := t.entry.At(e)
		if !yield(t.path.At(en.path).path, en.modes) {
			return
		}
		e = en.next[ofConn]
	}
}
