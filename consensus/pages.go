package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/gozkd/gozkd/internal/vfs"
)

// A checkpoint file has the format of bbolt, version 2 (its internal/common). Its pages are read here with nothing believed: a wrong byte in one would
// send bbolt round in circles, make it take memory without bound, or fault where no recover is. Looked at is that each page is the one that it says,
// that lengths and references stay inside, that none has two owners, and that keys are in order. Whether the values are right is for the digest of the state.

const (
	pageHead     = 16 // id, flags, count, overflow
	pageElement  = 16 // of a branch: pos, key size, page; of a leaf: flags, pos, key size, value size
	bucketHead   = 16 // root page, sequence
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageMeta     = 0x04
	pageFreelist = 0x10
	leafBucket   = 0x01
	metaBytes    = 64
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	noFreelist   = ^uint64(0)
	maxDepth     = 64
	minPage      = 1024
	maxPage      = 64 << 10
)

// pages are those of a file, as of the transaction that its newest meta page tells of.
type pages struct {
	file     io.ReaderAt
	size     int64 // of a page
	root     uint64
	freelist uint64
	end      uint64 // pages from here on are none
	txid     uint64
	meta     []byte   // of the transaction, as it stands in the file
	used     []uint64 // bits: they have an owner
	buffers  [][]byte // by depth, for pages on the way to the one that is looked at
	ahead    []byte   // read in advance
	aheadAt  int64    // its place
	next     uint64   // page behind the last one that was read
}

// openPages reads the meta pages. With strict both must be good. A crash may leave one that is not: then the other one counts, and is the transaction
// before.
func openPages(f vfs.File, strict bool) (*pages, error) {
	bytes, err := f.Size()
	if err != nil {
		return nil, err
	}
	meta, size, err := newestMeta(f, bytes, strict)
	if err != nil {
		return nil, err
	}
	p := &pages{file: f, size: size, meta: meta}
	meta = meta[pageHead:]
	p.root, p.freelist, p.end, p.txid = word(meta[16:]), word(meta[32:]), word(meta[40:]), word(meta[48:])
	if p.end < 2 || p.end > uint64(bytes)/uint64(size) {
		return nil, fmt.Errorf("it should have %d pages, and has %d", p.end, bytes/size)
	}
	p.used = make([]uint64, p.end/64+1)
	p.used[0] = 3 // the metas
	return p, nil
}

// settle makes the transaction durable that the file is at. Whoever wrote it may have died between its meta page and the last sync, or that sync may have
// failed, behind which pages can be clean without being on disk; what it refers to was synced before. The transaction before it, which the disk may
// still be at, needs the pages that are free now.
func (p *pages) settle(f vfs.File) error {
	if _, err := f.WriteAt(p.meta, int64(p.txid%2)*p.size); err != nil {
		return err
	}
	return f.Sync()
}

func word(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// newestMeta returns the page of the meta that counts, and the size of a page. One that can't be read is not one that is damaged: then nobody knows which
// counts.
func newestMeta(f io.ReaderAt, size int64, strict bool) (newest []byte, pageSize int64, err error) {
	good := 0
	look := func(at int64) error {
		b := make([]byte, pageHead+metaBytes)
		if _, err := f.ReadAt(b, at); errors.Is(err, io.EOF) {
			return nil // it is cut short
		} else if err != nil {
			return err
		}
		m := b[pageHead:]
		u32 := binary.NativeEndian.Uint32
		if u32(m) != boltMagic || u32(m[4:]) != boltVersion || metaSum(m) != word(m[metaBytes-8:]) || binary.NativeEndian.Uint16(b[8:]) != pageMeta {
			return nil
		}
		if id := word(m[48:]) % 2; word(b) != id || at != int64(id)*int64(u32(m[8:])) {
			return nil // it is the other one's, in the wrong place
		}
		good++
		if pageSize = int64(u32(m[8:])); newest == nil || word(m[48:]) > word(newest[pageHead+48:]) {
			newest = b
		}
		return nil
	}
	err = look(0)
	if good == 0 { // the size of a page is in the other one
		for guess := int64(minPage); err == nil && guess <= maxPage && good == 0; guess *= 2 {
			err = look(guess)
		}
	} else if pageSize >= minPage && pageSize < size {
		err = look(pageSize)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case good == 0:
		return nil, 0, errors.New("neither of its meta pages is good")
	case strict && good == 1:
		return nil, 0, errors.New("one of its meta pages is damaged, and what the other one has may be older")
	case pageSize < minPage || pageSize > maxPage:
		return nil, 0, fmt.Errorf("pages of %d bytes", pageSize)
	}
	return newest, pageSize, nil
}

func metaSum(m []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaBytes-8]) // a hash never fails
	return sum.Sum64()
}

// page is one page, with those that it takes up.
type page struct {
	id    uint64
	data  []byte
	flags uint16
	count int
	pages uint64
}

// page reads a page that nobody else may have. It is valid until another one is read at that depth.
func (p *pages) page(id uint64, depth int) (page, error) {
	g, err := p.peek(id, depth)
	if err != nil {
		return page{}, err
	}
	for i := id; i < id+g.pages; i++ {
		if err := p.use(i); err != nil {
			return page{}, err
		}
	}
	return g, nil
}

// peek reads a page whoever has it.
func (p *pages) peek(id uint64, depth int) (page, error) {
	if id < 2 || id >= p.end {
		return page{}, fmt.Errorf("a reference to page %d of %d", id, p.end)
	}
	for depth >= len(p.buffers) {
		p.buffers = append(p.buffers, make([]byte, p.size))
	}
	buf := p.buffers[depth][:p.size]
	if err := p.readAhead(buf, id); err != nil {
		return page{}, err
	}
	overflow := uint64(binary.NativeEndian.Uint32(buf[12:]))
	if is := word(buf); is != id || overflow >= p.end-id {
		return page{}, fmt.Errorf("page %d says that it is page %d, with %d more of %d", id, is, overflow, p.end)
	}
	if overflow > 0 {
		if need := int64(overflow+1) * p.size; int64(cap(buf)) < need {
			buf = make([]byte, need)
		} else {
			buf = buf[:need]
		}
		if _, err := p.file.ReadAt(buf, int64(id)*p.size); err != nil {
			return page{}, err
		}
		p.buffers[depth] = buf
	}
	p.next = id + overflow + 1
	g := page{id, buf, binary.NativeEndian.Uint16(buf[8:]), int(binary.NativeEndian.Uint16(buf[10:])), overflow + 1}
	if g.flags != pageFreelist && pageHead+g.count*pageElement > len(buf) {
		return page{}, fmt.Errorf("page %d has no room for %d elements", id, g.count)
	}
	return g, nil
}

// readAhead reads one page, and some more if they are being read in order.
func (p *pages) readAhead(buf []byte, id uint64) error {
	const ahead = 128 << 10
	at := int64(id) * p.size
	if from := at - p.aheadAt; from >= 0 && from+p.size <= int64(len(p.ahead)) {
		copy(buf, p.ahead[from:])
		return nil
	}
	if id != p.next {
		_, err := p.file.ReadAt(buf, at)
		return err
	}
	if p.ahead == nil {
		p.ahead = make([]byte, ahead)
	}
	p.ahead, p.aheadAt = p.ahead[:min(ahead, (int64(p.end)*p.size-at))], at
	n, err := p.file.ReadAt(p.ahead, at)
	if p.ahead = p.ahead[:n]; int64(n) < p.size {
		return err
	}
	copy(buf, p.ahead)
	return nil
}

func (p *pages) use(id uint64) error {
	if p.used[id/64]&(1<<(id%64)) != 0 {
		return fmt.Errorf("page %d is used twice", id)
	}
	p.used[id/64] |= 1 << (id % 64)
	return nil
}

// branch returns an element of a branch.
func (g *page) branch(i int) (key []byte, child uint64, err error) {
	at := pageHead + i*pageElement
	e := g.data[at : at+pageElement]
	if key, err = part(g.data, at, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), 0); err != nil {
		return nil, 0, fmt.Errorf("page %d, element %d: %w", g.id, i, err)
	}
	return key, word(e[8:]), nil
}

// leaf returns an element of a leaf.
func (g *page) leaf(i int) (flags uint32, key, value []byte, err error) {
	at := pageHead + i*pageElement
	u32 := binary.NativeEndian.Uint32
	e := g.data[at : at+pageElement]
	n, more := u32(e[8:]), u32(e[12:])
	both, err := part(g.data, at, u32(e[4:]), n, more)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("page %d, element %d: %w", g.id, i, err)
	}
	return u32(e), both, both[n : n+more : n+more], nil
}

// part returns what an element of a page refers to: n bytes at pos behind where the element is, with more bytes behind them in its capacity.
func part(data []byte, at int, pos, n, more uint32) ([]byte, error) {
	from := uint64(at) + uint64(pos)
	if from+uint64(n)+uint64(more) > uint64(len(data)) {
		return nil, errors.New("it is not inside its page")
	}
	return data[from : from+uint64(n) : from+uint64(n)+uint64(more)], nil
}

// bounds are those of the keys in a page: at least low, and below high if that is not nil.
type bounds struct{ low, high []byte }

// order reports whether a key may follow the one before, which is nil for the first.
func (b bounds) order(before, key []byte) bool {
	if before == nil {
		before = b.low
		return bytes.Compare(before, key) <= 0 && (b.high == nil || bytes.Compare(key, b.high) < 0)
	}
	return bytes.Compare(before, key) < 0 && (b.high == nil || bytes.Compare(key, b.high) < 0)
}

// bucket is a tree of keys: it names its root, or is small enough to be its only page itself.
type bucket struct {
	name   string
	root   uint64
	inline page // if root is 0
}

// buckets reads the tree at the top, which holds nothing else: the bucket of the meta, and that of the state.
func (p *pages) buckets() (found []bucket, err error) {
	err = p.tree(p.root, bounds{}, 0, leafBucket, func(name, b []byte) error {
		head := len(b)
		if head < bucketHead {
			return fmt.Errorf("bucket %q has %d bytes", name, head)
		}
		is := bucket{name: string(name), root: word(b)}
		if is.root == 0 {
			b = bytes.Clone(b[bucketHead:])
			if len(b) < pageHead || binary.NativeEndian.Uint16(b[8:]) != pageLeaf {
				return fmt.Errorf("bucket %q has no page", name)
			}
			is.inline = page{data: b, flags: pageLeaf, count: int(binary.NativeEndian.Uint16(b[10:]))}
			if pageHead+is.inline.count*pageElement > len(b) {
				return fmt.Errorf("bucket %q has no room for %d elements", name, is.inline.count)
			}
		}
		found = append(found, is)
		return nil
	})
	if err == nil && (len(found) != 2 || found[0].name != string(metaBucket) || found[1].name != string(stateBucket)) {
		err = errors.New("a bucket is missing, or there is one too many")
	}
	return found, err
}

// pairs calls visit for each key of a bucket in order, until it returns an error. What it gets is valid for one step.
func (p *pages) pairs(b bucket, visit func(key, value []byte) error) error {
	if b.root == 0 {
		return p.leaf(b.inline, bounds{}, 0, visit)
	}
	return p.tree(b.root, bounds{}, 0, 0, visit)
}

// tree walks over a page and all below it. Its leaves hold elements of one kind.
func (p *pages) tree(id uint64, in bounds, depth int, kind uint32, visit func(key, value []byte) error) error {
	g, err := p.page(id, depth)
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return fmt.Errorf("page %d is %d levels deep", id, depth)
	case g.flags == pageLeaf:
		return p.leaf(g, in, kind, visit)
	case g.flags != pageBranch || g.count == 0:
		return fmt.Errorf("page %d has the kind %#x and %d elements", id, g.flags, g.count)
	}
	key, child, err := g.branch(0)
	if err == nil && !in.order(nil, key) {
		err = fmt.Errorf("page %d: its first key is out of order", id)
	}
	for i := 1; err == nil && i <= g.count; i++ {
		next, sibling := in.high, uint64(0)
		if i < g.count {
			if next, sibling, err = g.branch(i); err == nil && !in.order(key, next) {
				err = fmt.Errorf("page %d: key %d is out of order", id, i)
			}
		}
		if err == nil {
			err = p.tree(child, bounds{key, next}, depth+1, kind, visit)
		}
		key, child = next, sibling
	}
	return err
}

func (p *pages) leaf(g page, in bounds, kind uint32, visit func(key, value []byte) error) error {
	var before []byte
	for i := range g.count {
		flags, key, value, err := g.leaf(i)
		switch {
		case err != nil:
			return err
		case flags != kind:
			return fmt.Errorf("page %d, element %d has the kind %#x", g.id, i, flags)
		case !in.order(before, key):
			return fmt.Errorf("page %d: key %d is out of order", g.id, i)
		}
		if err := visit(key, value); err != nil {
			return err
		}
		before = key
	}
	return nil
}

// free reads the list of free pages, of which none may have an owner, and tells where it is.
func (p *pages) free() (ids []uint64, list span, err error) {
	if p.freelist == noFreelist {
		return nil, span{}, nil
	}
	g, err := p.page(p.freelist, 0)
	switch {
	case err != nil:
		return nil, span{}, err
	case g.flags != pageFreelist:
		return nil, span{}, fmt.Errorf("page %d has the kind %#x, and should list the free ones", g.id, g.flags)
	}
	b, n := g.data[pageHead:], uint64(g.count)
	if g.count == 0xFFFF { // the number does not fit there
		b, n = b[8:], word(b)
	}
	if n > uint64(len(b)/8) {
		return nil, span{}, fmt.Errorf("page %d has no room for a list of %d", g.id, n)
	}
	ids = make([]uint64, n)
	for i := range ids {
		ids[i] = word(b[8*i:])
		if ids[i] < 2 || ids[i] >= p.end {
			return nil, span{}, fmt.Errorf("page %d lists page %d of %d as free", g.id, ids[i], p.end)
		}
		if err := p.use(ids[i]); err != nil {
			return nil, span{}, fmt.Errorf("page %d lists one as free: %w", g.id, err)
		}
	}
	return ids, span{g.id, g.pages}, nil
}
