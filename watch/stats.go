package watch

import "slices"

// Stats counts the connections, the paths and the pairs of both in the data table: data, persistent and recursive
// watches. It leaves child watches out, as ZooKeeper does in the word wchs. O(1).
func (t *Table) Stats() (conns, paths, watches int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dataConns, t.dataPaths, t.dataEntries
}

// Len returns the number of pairs of a connection and a path in both tables, data and child: a persistent watch, which
// is in both, counts twice, as in ZooKeeper's watch_count. It takes no lock.
func (t *Table) Len() int { return int(t.entries.Load()) }

// ByConn returns the paths in the data table (see Stats) of each connection that has any, sorted. The caller owns the
// result. Its cost grows with the number of watches, and all else on the table waits: it is for the operator's word wchc.
func (t *Table) ByConn() map[ConnID][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[ConnID][]string, t.dataConns)
	for path, p := range t.paths {
		for c := range t.dataOn(p) {
			m[c] = append(m[c], path)
		}
	}
	for _, paths := range m {
		slices.Sort(paths)
	}
	return m
}

// ByPath returns the connections in the data table (see Stats) on each path that has any, sorted. Otherwise as ByConn.
func (t *Table) ByPath() map[string][]ConnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string][]ConnID, t.dataPaths)
	for path, p := range t.paths {
		for c := range t.dataOn(p) {
			m[path] = append(m[path], c)
		}
		slices.Sort(m[path])
	}
	return m
}

// dataOn ranges over the connections in the data table on a path.
func (t *Table) dataOn(p uint32) func(yield func(ConnID) bool) {
	return func(yield func(ConnID) bool) {
		l := t.path.at(p).lists[data]
		for e, left := l.head, l.n; left > 0; left-- {
			en := t.entry.at(e)
			if !yield(t.conn.at(en.conn).id) {
				return
			}
			e = en.pathNext
		}
	}
}
