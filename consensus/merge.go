package consensus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"github.com/gozkd/gozkd/internal/vfs"
)

// merge is a transaction on a checkpoint file: it merges keys that come in order into the tree of the state, and writes only pages that were free before.
// What bbolt does for puts in any order it does for a run of them: a leaf that changes is read once, written once, and forgotten, so that memory
// does not grow with the checkpoint; new leaves are written one behind the other. Pages without changes stay where they are.
//
// On disk stays the transaction before until commit writes the meta page, which is the last step. So a merge that ends anywhere else changes
// nothing (C4), if the transaction before was settled when it began.
type merge struct {
	file vfs.File
	old  *pages // nil: a new file
	size int    // of a page
	sync bool   // else the caller syncs, and the file is of no use before
	txid uint64
	base uint64 // index of the checkpoint in old

	path   []treeStep // from the root of the old tree to where the merge is; empty: behind its end
	height int        // of the old tree's root: leaves have height 0
	levels []level
	last   []byte // key

	free  []span // may be written to
	from  int    // those before it are used up, or too short for several pages
	none  uint64 // no span has so many pages; 0: not known
	freed []uint64
	end   uint64 // of the file, in pages

	buf      []byte // pages that follow one another and are not in the file yet
	at       uint64 // the first of them
	unsynced int    // bytes
}

// treeStep is a page on the way to where the merge is.
type treeStep struct {
	page
	height int
	next   int    // element that comes next
	high   []byte // keys are below it, if it is not nil
}

// span is a run of pages.
type span struct{ first, pages uint64 }

// level is what is to be written at a height: the last page or two of it.
type level struct {
	data  []byte
	items []item
}

// item is a key, and its value or the page below.
type item struct {
	key, value int // bytes
	child      uint64
}

// bytes is the size of a page of the first n items.
func (v *level) bytes(n int) int {
	size := pageHead + n*pageElement
	for _, it := range v.items[:n] {
		size += it.key + it.value
	}
	return size
}

func (v *level) all() int { return pageHead + len(v.items)*pageElement + len(v.data) }

// least is how many items a page at that height has at least. bbolt can't do without a sibling.
func least(height int) int { return min(height+1, 2) }

// fullPercent is how full a page is made where more follow: values grow by a few bytes when they are set.
const fullPercent = 90

// beginMerge starts a transaction on the file of old, or on a new one, with pages of that size. Without sync the caller syncs, and the file is
// of no use before.
func beginMerge(f vfs.File, old *pages, size int, sync bool) (*merge, error) {
	m := &merge{file: f, old: old, size: size, sync: sync, end: 2, txid: 1}
	if old == nil {
		return m, nil
	}
	m.size, m.end, m.txid = int(old.size), old.end, old.txid+1
	buckets, err := old.buckets()
	if err != nil {
		return nil, err
	}
	before, err := readMeta(old, buckets[0])
	if err != nil {
		return nil, err
	}
	m.base = before.Index
	for id := uint64(2); id < old.end; id++ { // of the buckets' names and the meta bucket, which are written anew
		if old.used[id/64]&(1<<(id%64)) != 0 {
			m.freed = append(m.freed, id)
		}
	}
	free, list, err := old.free()
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
	return m, m.enter(buckets[1])
}

// enter goes to the root of the old tree.
func (m *merge) enter(b bucket) error {
	if b.root == 0 {
		m.path = append(m.path, treeStep{page: b.inline})
		return nil
	}
	for id := b.root; ; m.height++ { // its first leaf tells how high it is
		g, err := m.old.peek(id, m.height)
		switch {
		case err != nil:
			return err
		case m.height > maxDepth:
			return fmt.Errorf("page %d is %d levels deep", id, m.height)
		case g.flags == pageLeaf:
			return m.descend(b.root, m.height, nil)
		case g.flags != pageBranch || g.count == 0:
			return fmt.Errorf("page %d has the kind %#x and %d elements", id, g.flags, g.count)
		}
		if _, id, err = g.branch(0); err != nil {
			return err
		}
	}
}

// descend goes to a page, which is written anew.
func (m *merge) descend(id uint64, height int, high []byte) error {
	g, err := m.old.page(id, len(m.path))
	if err != nil {
		return err
	}
	if (g.flags == pageLeaf) != (height == 0) || g.flags != pageLeaf && g.flags != pageBranch {
		return fmt.Errorf("page %d, %d above the leaves, has the kind %#x", id, height, g.flags)
	}
	for i := range g.pages {
		m.freed = append(m.freed, id+i)
	}
	m.path = append(m.path, treeStep{page: g, height: height, high: high})
	return nil
}

// put merges a key; a nil value deletes it. Keys come in order.
func (m *merge) put(key, value []byte) error {
	if m.last != nil && bytes.Compare(m.last, key) >= 0 {
		return fmt.Errorf("key %q comes behind %q", key, m.last)
	}
	m.last = append(m.last[:0], key...)
	if err := m.advance(key); err != nil || value == nil {
		return err
	}
	return m.add(0, key, value, 0)
}

// advance passes on what the old tree has before key, and what it has of key is dropped. With nil it passes on the rest.
func (m *merge) advance(key []byte) error {
	for len(m.path) > 0 {
		s := &m.path[len(m.path)-1]
		here := key != nil && (s.high == nil || bytes.Compare(key, s.high) < 0) // the key belongs below this page
		if s.height == 0 {
			if err := m.passLeaf(s, key); err != nil || here {
				return err
			}
			m.path = m.path[:len(m.path)-1]
			continue
		}
		if s.next == s.count {
			m.path = m.path[:len(m.path)-1]
			continue
		}
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
		if below || m.wants(s.height-1) {
			err = m.descend(child, s.height-1, high)
		} else {
			err = m.keep(s.height-1, first, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) passLeaf(s *treeStep, key []byte) error {
	for ; s.next < s.count; s.next++ {
		flags, k, v, err := s.leaf(s.next)
		if err != nil {
			return err
		}
		if flags != 0 {
			return fmt.Errorf("page %d, element %d has the kind %#x", s.id, s.next, flags)
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

// wants reports whether what is to be written up to a height would end in a small page, so that the next one is better merged with it than kept.
func (m *merge) wants(height int) bool {
	below := 0 // pages that come from there, at least
	for h := range height + 1 {
		v := level{}
		if h < len(m.levels) {
			v = m.levels[h]
		}
		n := len(v.items) + below
		if n > 0 && (v.all() < m.size/4 || n < least(h)) {
			return true
		}
		below = min(n, 1)
	}
	return false
}

// keep leaves a page and all below it as they are.
func (m *merge) keep(height int, key []byte, id uint64) error {
	for h := 0; h <= height && h < len(m.levels); h++ { // which may add a level
		if err := m.flush(h); err != nil {
			return err
		}
	}
	return m.add(height+1, key, nil, id)
}

// add puts an item at the end of what is to be written at a height.
func (m *merge) add(height int, key, value []byte, child uint64) error {
	for height >= len(m.levels) {
		m.levels = append(m.levels, level{})
	}
	v := &m.levels[height]
	v.data = append(append(v.data, key...), value...)
	v.items = append(v.items, item{len(key), len(value), child})
	for v.all() > 2*m.size {
		n, size := 0, pageHead
		for n < len(v.items) {
			size += pageElement + v.items[n].key + v.items[n].value
			if n >= least(height) && size > m.size*fullPercent/100 {
				break
			}
			n++
		}
		if len(v.items)-n < least(height) {
			return nil
		}
		if err := m.emit(height, n); err != nil {
			return err
		}
		v = &m.levels[height]
	}
	return nil
}

// flush writes all that is to be written at a height: as one page, or two of about the same size.
func (m *merge) flush(height int) error {
	v := &m.levels[height]
	if n := len(v.items); n >= 2*least(height) && v.all() > m.size {
		half, size := least(height), v.bytes(least(height))
		for half < n-least(height) && size < v.all()/2 {
			size += pageElement + v.items[half].key + v.items[half].value
			half++
		}
		if err := m.emit(height, half); err != nil {
			return err
		}
	}
	if n := len(m.levels[height].items); n > 0 {
		return m.emit(height, n)
	}
	return nil
}

// emit writes a page of the first n items of a level, and adds it to the level above.
func (m *merge) emit(height, n int) error {
	v := &m.levels[height]
	flags := uint16(pageLeaf)
	if height > 0 {
		flags = pageBranch
	}
	id, err := m.place(v.bytes(n))
	if err != nil {
		return err
	}
	m.buf = v.appendPage(m.buf, id, flags, n, m.size)
	cut := v.bytes(n) - pageHead - n*pageElement
	if err := m.add(height+1, v.data[:v.items[0].key], nil, id); err != nil {
		return err
	}
	v = &m.levels[height]
	v.data, v.items = v.data[:copy(v.data, v.data[cut:])], v.items[:copy(v.items, v.items[n:])]
	return nil
}

// appendPage appends the first n items as a page, and zeros up to its end.
func (v *level) appendPage(b []byte, id uint64, flags uint16, n, size int) []byte {
	start, bytes := len(b), v.bytes(n)
	pages := max(1, (bytes+size-1)/size)
	b = appendHead(b, id, flags, n, pages)
	at := pageHead + n*pageElement // of the item's key in the page
	for i, it := range v.items[:n] {
		pos := uint32(at - pageHead - i*pageElement)
		if flags == pageBranch {
			b = binary.NativeEndian.AppendUint32(b, pos)
			b = binary.NativeEndian.AppendUint32(b, uint32(it.key))
			b = binary.NativeEndian.AppendUint64(b, it.child)
		} else {
			b = binary.NativeEndian.AppendUint32(b, uint32(it.child)) // the kind
			b = binary.NativeEndian.AppendUint32(b, pos)
			b = binary.NativeEndian.AppendUint32(b, uint32(it.key))
			b = binary.NativeEndian.AppendUint32(b, uint32(it.value))
		}
		at += it.key + it.value
	}
	b = append(b, v.data[:bytes-pageHead-n*pageElement]...)
	return append(b, make([]byte, start+pages*size-len(b))...)
}

func appendHead(b []byte, id uint64, flags uint16, count, pages int) []byte {
	b = binary.NativeEndian.AppendUint64(b, id)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint16(b, uint16(count))
	return binary.NativeEndian.AppendUint32(b, uint32(pages-1))
}

const (
	// mergeBuffer is how much is written at once, if it is in one place.
	mergeBuffer = 256 << 10
	// mergeSync is how much is written without a sync. One at the end would have all of it to write, and the log's syncs would wait behind it.
	mergeSync = 1 << 20
)

// place finds a place for so many bytes; what is appended to m.buf next goes there.
func (m *merge) place(bytes int) (id uint64, err error) {
	pages := uint64(max(1, (bytes+m.size-1)/m.size))
	id = m.allocate(pages)
	if id != m.at+uint64(len(m.buf)/m.size) || len(m.buf) >= mergeBuffer {
		err = m.write()
		m.at = id
		runtime.Gosched() // those who serve clients go first
	}
	return id, err
}

func (m *merge) write() error {
	if len(m.buf) == 0 {
		return nil
	}
	if _, err := m.file.WriteAt(m.buf, int64(m.at)*int64(m.size)); err != nil {
		return err
	}
	m.unsynced += len(m.buf)
	m.at, m.buf = m.at+uint64(len(m.buf)/m.size), m.buf[:0]
	if m.sync && m.unsynced >= mergeSync {
		m.unsynced = 0
		return m.file.Sync()
	}
	return nil
}

// allocate takes free pages that follow one another, or new ones.
func (m *merge) allocate(pages uint64) uint64 {
	for len(m.free) > 0 && m.free[0].pages == 0 {
		m.free, m.from = m.free[1:], max(m.from-1, 0)
	}
	first := 0
	if pages > 1 {
		first = m.from // else looking for them would take longer and longer
	}
	if m.none == 0 || pages < m.none {
		for i := first; i < len(m.free); i++ {
			s := &m.free[i]
			if s.pages < pages {
				continue
			}
			if pages > 1 {
				m.from = i
			}
			s.first, s.pages = s.first+pages, s.pages-pages
			return s.first - pages
		}
		m.none = pages
	}
	m.end += pages
	return m.end - pages
}

// commit writes the rest, and then the transaction counts.
func (m *merge) commit(meta []byte) error {
	if err := m.advance(nil); err != nil {
		return err
	}
	root, err := m.finish()
	if err != nil {
		return err
	}
	top, err := m.writeTop(root, meta)
	if err != nil {
		return err
	}
	list, err := m.writeFree()
	if err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	if m.old == nil { // as bbolt has it: the other meta is that of the transaction before
		if err := m.writeMeta(m.txid-1, top, list); err != nil {
			return err
		}
	}
	if m.sync {
		if err := m.file.Sync(); err != nil {
			return err
		}
	}
	if err := m.writeMeta(m.txid, top, list); err != nil {
		return err
	}
	if m.sync {
		return m.file.Sync()
	}
	return nil
}

// finish writes what is left at each height, and returns the root.
func (m *merge) finish() (root uint64, err error) {
	if len(m.levels) == 0 {
		m.levels = make([]level, 1)
	}
	for h := 0; ; h++ {
		v := &m.levels[h]
		above := slices.ContainsFunc(m.levels[h+1:], func(v level) bool { return len(v.items) > 0 })
		switch n := len(v.items); {
		case !above && h == 0 && n == 0: // nothing is left
			if root, err = m.place(pageHead); err != nil {
				return 0, err
			}
			m.buf = v.appendPage(m.buf, root, pageLeaf, 0, m.size)
			return root, nil
		case !above && h > 0 && n == 1:
			return v.items[0].child, nil
		case above && n > 0 && n < least(h):
			if err := m.takeBack(h); err != nil {
				return 0, err
			}
		}
		if err := m.flush(h); err != nil {
			return 0, err
		}
	}
}

// takeBack puts the last page at a height in front of what is to be written there.
func (m *merge) takeBack(height int) error {
	if len(m.levels[height+1].items) == 0 {
		if err := m.takeBack(height + 1); err != nil {
			return err
		}
	}
	v := &m.levels[height+1]
	it := v.items[len(v.items)-1]
	v.items, v.data = v.items[:len(v.items)-1], v.data[:len(v.data)-it.key-it.value]
	if err := m.write(); err != nil { // it may be one of ours
		return err
	}
	m.old.end, m.old.ahead = m.end, m.old.ahead[:0]
	g, err := m.old.peek(it.child, 0)
	if err == nil && g.flags != pageBranch {
		err = fmt.Errorf("page %d, %d above the leaves, has the kind %#x", it.child, height, g.flags)
	}
	if err != nil {
		return err
	}
	for i := range g.pages {
		m.freed = append(m.freed, it.child+i)
	}
	rest := m.levels[height]
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
	for i, at := 0, 0; i < len(rest.items); i++ {
		it := rest.items[i]
		if err := m.add(height, rest.data[at:at+it.key], nil, it.child); err != nil {
			return err
		}
		at += it.key
	}
	return nil
}

// writeTop writes the two buckets.
func (m *merge) writeTop(root uint64, meta []byte) (id uint64, err error) {
	pair := func(v *level, key, value []byte, kind uint64) {
		v.data = append(append(v.data, key...), value...)
		v.items = append(v.items, item{len(key), len(value), kind})
	}
	var inner, top level
	pair(&inner, metaKey, meta, 0)
	inline := inner.appendPage(make([]byte, bucketHead), 0, pageLeaf, 1, inner.all()) // without zeros
	pair(&top, metaBucket, inline, leafBucket)
	pair(&top, stateBucket, append(binary.NativeEndian.AppendUint64(nil, root), make([]byte, bucketHead-8)...), leafBucket)
	if id, err = m.place(top.all()); err == nil {
		m.buf = top.appendPage(m.buf, id, pageLeaf, 2, m.size)
	}
	return id, err
}

// writeFree writes the list of free pages: those left over, and those that only the transaction before needs.
func (m *merge) writeFree() (id uint64, err error) {
	n := len(m.freed) + 1
	for _, s := range m.free {
		n += int(s.pages)
	}
	bytes := pageHead + 8*n
	pages := (bytes + m.size - 1) / m.size
	if id, err = m.place(bytes); err != nil {
		return 0, err
	}
	ids := make([]uint64, 0, n)
	for _, s := range m.free {
		for i := range s.pages {
			ids = append(ids, s.first+i)
		}
	}
	ids = append(ids, m.freed...)
	slices.Sort(ids)
	start, count := len(m.buf), min(len(ids), 0xFFFF)
	m.buf = appendHead(m.buf, id, pageFreelist, count, pages)
	if count == 0xFFFF {
		m.buf = binary.NativeEndian.AppendUint64(m.buf, uint64(len(ids)))
	}
	for _, id := range ids {
		m.buf = binary.NativeEndian.AppendUint64(m.buf, id)
	}
	m.buf = append(m.buf, make([]byte, start+pages*m.size-len(m.buf))...)
	return id, nil
}

func (m *merge) writeMeta(txid, top, list uint64) error {
	b := appendHead(make([]byte, 0, m.size), txid%2, pageMeta, 0, 1)
	for _, v := range [...]uint32{boltMagic, boltVersion, uint32(m.size), 0} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	for _, v := range [...]uint64{top, 0, list, m.end, txid} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	b = binary.NativeEndian.AppendUint64(b, metaSum(b[pageHead:pageHead+metaBytes]))
	_, err := m.file.WriteAt(b[:m.size], int64(txid%2)*int64(m.size))
	return err
}
