package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/internal/vfs"
)

// commit copies the rest of the old tree, writes pending pages, and makes the transaction count.
func (m *merge) commit(meta []byte) error {
	if err := m.advance(nil); err != nil {
		return err
	}
	state, err := m.writeRoot()
	if err != nil {
		return err
	}
	root, err := m.writeBuckets(state, meta)
	if err != nil {
		return err
	}
	list, err := m.writeFreelist()
	if err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	if m.old == nil { // a new file needs both meta pages: the other page is that of the previous transaction
		if err := m.writeMeta(m.txid-1, root, list); err != nil {
			return err
		}
	}
	if err := m.file.Sync(); err != nil {
		return err
	}
	if err := m.writeMeta(m.txid, root, list); err != nil {
		return err
	}
	return m.file.Sync()
}

// writeRoot writes the pending elements of each height, and returns the root of the state.
func (m *merge) writeRoot() (root uint64, err error) {
	if len(m.levels) == 0 {
		m.levels = make([]level, 1)
	}
	for h := 0; ; h++ {
		v := &m.levels[h]
		above := slices.ContainsFunc(m.levels[h+1:], func(v level) bool { return len(v.elements) > 0 })
		switch n := len(v.elements); {
		case !above && h == 0 && n == 0: // the state is empty
			return m.append(pageHeader, func(b []byte, id uint64, pages int) []byte { return v.appendPage(b, id, flagLeaf, 0, pages) })
		case !above && h > 0 && n == 1:
			return v.elements[0].child, nil
		case above && n > 0 && n < minElements(h):
			if err := m.reopenLastPage(h); err != nil {
				return 0, err
			}
		}
		if err := m.flush(h); err != nil {
			return 0, err
		}
	}
}

// reopenLastPage puts the elements of the last branch page of a height back before those that are
// pending, because these alone are too few for a page.
func (m *merge) reopenLastPage(height int) error {
	if len(m.levels[height+1].elements) == 0 {
		if err := m.reopenLastPage(height + 1); err != nil {
			return err
		}
	}
	v := &m.levels[height+1]
	last := v.elements[len(v.elements)-1]
	v.elements, v.data = v.elements[:len(v.elements)-1], v.data[:len(v.data)-last.key-last.value]
	if err := m.write(); err != nil { // this transaction may have written the page
		return err
	}
	m.old.end, m.old.ahead = m.end, m.old.ahead[:0]
	g, err := m.old.read(last.child, 0)
	if err == nil && g.flags != flagBranch {
		err = g.errKind("branch")
	}
	if err != nil {
		return err
	}
	m.release(g)
	pending := m.levels[height]
	m.levels[height] = level{}
	for i := range g.count {
		key, child, err := g.branch(i)
		if err != nil {
			return err
		}
		if err := m.add(height, key, nil, child); err != nil {
			return err
		}
	}
	at := 0
	for _, e := range pending.elements {
		if err := m.add(height, pending.data[at:at+e.key], nil, e.child); err != nil {
			return err
		}
		at += e.key
	}
	return nil
}

// writeBuckets writes the tree of buckets. The meta bucket is stored inline.
func (m *merge) writeBuckets(state uint64, meta []byte) (root uint64, err error) {
	var inner, top level
	inner.add(metaKey, meta, elementPair)
	inline := inner.appendPage(make([]byte, bucketHeader), 0, flagLeaf, 1, 1)
	top.add(metaBucket, inline, elementBucket)
	top.add(stateBucket, append(binary.NativeEndian.AppendUint64(nil, state), make([]byte, bucketHeader-8)...), elementBucket)
	return m.append(top.size(), func(b []byte, id uint64, pages int) []byte { return top.appendPage(b, id, flagLeaf, 2, pages) })
}

// writeFreelist writes the list of free pages: those left over, and those that only the previous
// transaction needs.
func (m *merge) writeFreelist() (id uint64, err error) {
	n := len(m.freed)
	for _, s := range m.free {
		n += int(s.pages)
	}
	return m.append(pageHeader+8*(n+1), func(b []byte, id uint64, pages int) []byte { // 1: the long count
		ids := make([]uint64, 0, n)
		for _, s := range m.free {
			for i := range s.pages {
				ids = append(ids, s.first+i)
			}
		}
		ids = append(ids, m.freed...)
		slices.Sort(ids)
		b = appendPageHeader(b, id, flagFreelist, min(len(ids), longFreelist), pages)
		if len(ids) >= longFreelist {
			b = binary.NativeEndian.AppendUint64(b, uint64(len(ids)))
		}
		for _, id := range ids {
			b = binary.NativeEndian.AppendUint64(b, id)
		}
		return b
	})
}

func (m *merge) writeMeta(txid, root, list uint64) error {
	return writeMetaPage(m.file, metaPage{pageSize: int64(m.pageSize), root: root, freelist: list, end: m.end, txid: txid})
}

func writeMetaPage(f vfs.File, m metaPage) error {
	b := appendMetaPage(make([]byte, 0, m.pageSize), m)
	if _, err := f.WriteAt(b[:m.pageSize], int64(m.txid%2)*m.pageSize); err != nil {
		return fmt.Errorf("meta page: %w", err)
	}
	return nil
}
