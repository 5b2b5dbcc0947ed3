package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/internal/vfs"
)

// merge is a transaction on a checkpoint file. It merges keys, in ascending order, into the tree of
// the state, and writes only to pages that were free before. bbolt does the same for puts in any
// order; a merge reads each changed leaf once, writes it once, and then forgets it, so that the
// memory of a merge does not grow with the checkpoint. New leaves are written one after the other.
// Pages without changes stay where they are.
//
// Until commit writes the meta page, which is the last step, the previous transaction stays current
// on disk. So a merge that ends earlier changes nothing (C4), provided that the previous
// transaction was durable before the merge wrote anything.
type merge struct {
	pageWriter
	old  *pageReader // nil: a new file
	txid uint64

	path   []pathStep // from the root of the old tree to the current leaf; empty: the old tree is passed
	height int        // of the root of the old tree; leaves have height 0
	levels []level    // by height: elements that are not written yet
	last   []byte     // last key
}

// pathStep is a page on the way from the root to the current leaf.
type pathStep struct {
	page
	height int
	next   int    // element that comes next
	high   []byte // bound of the keys below the page; nil: none
}

func newMerge(f vfs.File, pageSize int) *merge {
	return &merge{pageWriter: pageWriter{file: f, pageSize: pageSize, end: firstDataPage}, txid: 1}
}

// beginWith makes m a transaction on the file of old, and returns the meta that is replaced.
func (m *merge) beginWith(old *pageReader) (meta []byte, err error) {
	m.old, m.end, m.txid = old, old.end, old.txid+1
	meta, state, err := old.buckets()
	if err != nil {
		return nil, err
	}
	// Only the pages of the bucket names and the meta were read so far. These are replaced.
	for id := uint64(firstDataPage); id < old.end; id++ {
		if old.isUsed(id) {
			m.freed = append(m.freed, id)
		}
	}
	free, list, err := old.readFreelist()
	if err != nil {
		return nil, err
	}
	for i := range list.pages {
		m.freed = append(m.freed, list.first+i)
	}
	slices.Sort(free)
	for _, id := range free {
		if n := len(m.free); n > 0 && m.free[n-1].first+m.free[n-1].pages == id {
			m.free[n-1].pages++
		} else {
			m.free = append(m.free, span{id, 1})
		}
	}
	return meta, m.enter(state)
}

// enter goes to the root of the old tree.
func (m *merge) enter(b bucket) error {
	if b.root == 0 {
		m.path = append(m.path, pathStep{page: b.inline})
		return nil
	}
	for id := b.root; ; m.height++ { // the depth of its first leaf is the height of the tree
		g, err := m.old.read(id, m.height)
		switch {
		case err != nil:
			return err
		case m.height > maxDepth:
			return fmt.Errorf("page %d: more than %d levels deep", id, maxDepth)
		case g.flags == flagLeaf:
			return m.descend(b.root, m.height, nil)
		case g.flags != flagBranch || g.count == 0:
			return g.errKind("branch or leaf")
		}
		if _, id, err = g.branch(0); err != nil {
			return err
		}
	}
}

// descend goes to a page whose elements are going to be written anew.
func (m *merge) descend(id uint64, height int, high []byte) error {
	g, err := m.old.claim(id, len(m.path))
	if err != nil {
		return err
	}
	if want, name := kindAt(height); g.flags != want {
		return g.errKind(name)
	}
	m.release(g)
	m.path = append(m.path, pathStep{page: g, height: height, high: high})
	return nil
}

func kindAt(height int) (flags uint16, name string) {
	if height == 0 {
		return flagLeaf, "leaf"
	}
	return flagBranch, "branch"
}

// put sets a key; a nil value deletes it. Keys must ascend.
func (m *merge) put(key, value []byte) error {
	if m.last != nil && bytes.Compare(m.last, key) >= 0 {
		return fmt.Errorf("key %q follows key %q: keys must ascend", key, m.last)
	}
	if len(key) == 0 {
		return errors.New("the empty key is not allowed")
	}
	m.last = append(m.last[:0], key...)
	if err := m.advance(key); err != nil || value == nil {
		return err
	}
	return m.add(0, key, value, 0)
}

// advance copies what the old tree holds before key, and skips key itself. nil: it copies the rest.
func (m *merge) advance(key []byte) error {
	for len(m.path) > 0 {
		s := &m.path[len(m.path)-1]
		if s.height == 0 {
			here := key != nil && (s.high == nil || bytes.Compare(key, s.high) < 0) // the key belongs into this leaf
			if err := m.copyLeaf(s, key); err != nil || here {
				return err
			}
			m.path = m.path[:len(m.path)-1]
			continue
		}
		if s.next == s.count {
			m.path = m.path[:len(m.path)-1]
			continue
		}
		if err := m.advanceBranch(s, key); err != nil {
			return err
		}
	}
	return nil
}

// advanceBranch passes the next child of a branch page: it descends into a child that changes, and
// keeps any other child as it is.
func (m *merge) advanceBranch(s *pathStep, key []byte) error {
	first, child, err := s.branch(s.next)
	if err != nil {
		return err
	}
	high := s.high
	if s.next+1 < s.count {
		if high, _, err = s.branch(s.next + 1); err != nil {
			return err
		}
		if bytes.Compare(first, high) >= 0 {
			return fmt.Errorf("page %d: key %d is out of order", s.id, s.next+1)
		}
	}
	s.next++
	below := key != nil && (high == nil || bytes.Compare(key, high) < 0)
	if below || m.wouldLeaveSmallPage(s.height-1) {
		return m.descend(child, s.height-1, high)
	}
	return m.keep(s.height-1, first, child)
}

// copyLeaf copies the pairs of a leaf before key, and skips key. With a nil key it copies all.
func (m *merge) copyLeaf(s *pathStep, key []byte) error {
	for ; s.next < s.count; s.next++ {
		flags, k, v, err := s.leaf(s.next)
		if err != nil {
			return err
		}
		if flags != elementPair {
			return fmt.Errorf("page %d, element %d: flags %#x, want %#x", s.id, s.next, flags, elementPair)
		}
		if key != nil {
			if order := bytes.Compare(k, key); order > 0 {
				return nil
			} else if order == 0 {
				s.next++
				return nil
			}
		}
		if err := m.add(0, k, v, 0); err != nil {
			return err
		}
	}
	return nil
}

// wouldLeaveSmallPage reports whether writing all pending elements up to a height would end in a
// small page. Then the next page is better merged with them than kept.
func (m *merge) wouldLeaveSmallPage(height int) bool {
	below := 0 // pages that the height below adds, at least
	for h := range height + 1 {
		v := level{}
		if h < len(m.levels) {
			v = m.levels[h]
		}
		n := len(v.elements) + below
		if n > 0 && (v.size() < m.pageSize/4 || n < minElements(h)) {
			return true
		}
		below = min(n, 1)
	}
	return false
}

// keep leaves a page and all pages below it as they are.
func (m *merge) keep(height int, key []byte, id uint64) error {
	for h := 0; h <= height && h < len(m.levels); h++ { // flush may add a level
		if err := m.flush(h); err != nil {
			return err
		}
	}
	return m.add(height+1, key, nil, id)
}
