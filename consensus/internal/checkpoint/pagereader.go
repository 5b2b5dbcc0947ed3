package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/internal/vfs"
)

const maxDepth = 64

// pageReader reads the pages of a file as of its current transaction, and trusts none of them: it
// verifies that each page has the number of its reference, that lengths and references stay inside
// the file, that no page has two owners, and that keys are in order.
type pageReader struct {
	metaPage
	bothMetas bool // both meta pages are good
	file      io.ReaderAt
	used      []uint64 // bitmap of the pages that have an owner
	buffers   [][]byte // by depth, for the pages on the way to the current page

	// The readahead of pages that are read in file order.
	ahead   []byte
	aheadAt int64  // offset in the file
	next    uint64 // the page after the last page that was read
}

// Transaction selects a transaction of a file.
type Transaction int

const (
	// Newest is the transaction of the newest good meta page. After a crash one of the two meta
	// pages may be damaged: then the other page counts, which is that of the previous transaction.
	Newest Transaction = iota
	// NewestOfTwo demands that both meta pages are good: no other transaction can be the newest.
	NewestOfTwo
	// Previous is the transaction before Newest, for the case that Newest is damaged. Newest left
	// the pages of Previous unchanged, so Previous is complete until the next [Merge] begins.
	Previous
)

// newPageReader reads the meta pages, and returns a reader of the selected transaction.
func newPageReader(f vfs.File, which Transaction) (*pageReader, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	pages, err := readMetaPages(f, size)
	meta := pages.current
	switch {
	case err != nil:
		return nil, err
	case which != Newest && pages.good < 2:
		return nil, errors.New("one meta page is damaged, and the other one may be older")
	case which == Previous && pages.previous.root == meta.root:
		return nil, errors.New("there is no previous transaction")
	case which == Previous:
		meta = pages.previous
	}
	if err := meta.check(size); err != nil {
		return nil, err
	}
	p := &pageReader{
		metaPage: meta, bothMetas: pages.good == 2, file: f, used: make([]uint64, meta.end/64+1),
	}
	p.used[0] = 1<<firstDataPage - 1
	return p, nil
}

// makeDurable makes the current transaction durable, by writing its meta page again. The writer of
// the transaction may have died between writing that page and the last sync, or that sync may have
// failed, after which pages can be clean without being on disk. All pages that the meta page refers
// to were synced before it. Until the meta page is durable, the disk may still be at the previous
// transaction, which needs pages that are free now.
func (p *pageReader) makeDurable(f vfs.File) error {
	if _, err := f.WriteAt(p.raw, int64(p.txid%2)*p.pageSize); err != nil {
		return err
	}
	return f.Sync()
}

// claim reads a page that has no owner yet. It is valid until another page is read at that depth.
func (p *pageReader) claim(id uint64, depth int) (page, error) {
	g, err := p.read(id, depth)
	if err != nil {
		return page{}, err
	}
	for i := id; i < id+g.pages; i++ {
		if err := p.markUsed(i); err != nil {
			return page{}, err
		}
	}
	return g, nil
}

func (p *pageReader) markUsed(id uint64) error {
	if p.isUsed(id) {
		return fmt.Errorf("page %d: referenced twice", id)
	}
	p.used[id/64] |= 1 << (id % 64)
	return nil
}

func (p *pageReader) isUsed(id uint64) bool { return p.used[id/64]&(1<<(id%64)) != 0 }

// read reads a page whether it has an owner or not.
func (p *pageReader) read(id uint64, depth int) (page, error) {
	if id < firstDataPage || id >= p.end {
		return page{}, fmt.Errorf("a reference to page %d of %d", id, p.end)
	}
	for depth >= len(p.buffers) {
		p.buffers = append(p.buffers, make([]byte, p.pageSize))
	}
	buf := p.buffers[depth][:p.pageSize]
	if err := p.readFirst(buf, id); err != nil {
		return page{}, err
	}
	overflow := uint64(binary.NativeEndian.Uint32(buf[12:]))
	if is := word(buf); is != id || overflow >= p.end-id {
		return page{}, fmt.Errorf("page %d: its header names page %d with %d overflow pages, the file has %d pages", id, is, overflow, p.end)
	}
	if overflow > 0 {
		if need := int64(overflow+1) * p.pageSize; int64(cap(buf)) < need {
			buf = make([]byte, need)
		} else {
			buf = buf[:need]
		}
		if _, err := p.file.ReadAt(buf, int64(id)*p.pageSize); err != nil {
			return page{}, err
		}
		p.buffers[depth] = buf
	}
	p.next = id + overflow + 1
	g := page{id, buf, binary.NativeEndian.Uint16(buf[8:]), int(binary.NativeEndian.Uint16(buf[10:])), overflow + 1}
	if g.flags != flagFreelist {
		if err := g.checkRoom(); err != nil {
			return page{}, err
		}
	}
	return g, nil
}

// readFirst reads a page without its overflow pages, and some more in advance if pages are being
// read in file order.
func (p *pageReader) readFirst(buf []byte, id uint64) error {
	const ahead = 128 << 10
	at := int64(id) * p.pageSize
	if from := at - p.aheadAt; from >= 0 && from+p.pageSize <= int64(len(p.ahead)) {
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
	p.ahead, p.aheadAt = p.ahead[:min(ahead, int64(p.end)*p.pageSize-at)], at
	n, err := p.file.ReadAt(p.ahead, at)
	if p.ahead = p.ahead[:n]; int64(n) < p.pageSize {
		return err
	}
	copy(buf, p.ahead)
	return nil
}

// readFreelist reads which pages are free, none of which may have an owner, and where that list is.
func (p *pageReader) readFreelist() (ids []uint64, list span, err error) {
	if p.freelist == noFreelist {
		return nil, span{}, nil
	}
	g, err := p.claim(p.freelist, 0)
	switch {
	case err != nil:
		return nil, span{}, err
	case g.flags != flagFreelist:
		return nil, span{}, g.errKind("freelist")
	}
	b, n := g.data[pageHeader:], uint64(g.count)
	if n == longFreelist {
		b, n = b[8:], word(b)
	}
	if n > uint64(len(b)/8) {
		return nil, span{}, fmt.Errorf("page %d: no room for a list of %d free pages", g.id, n)
	}
	ids = make([]uint64, n)
	for i := range ids {
		ids[i] = word(b[8*i:])
		if ids[i] < firstDataPage || ids[i] >= p.end {
			return nil, span{}, fmt.Errorf("page %d: lists page %d of %d as free", g.id, ids[i], p.end)
		}
		if err := p.markUsed(ids[i]); err != nil {
			return nil, span{}, fmt.Errorf("page %d: lists a page as free: %w", g.id, err)
		}
	}
	return ids, span{g.id, g.pages}, nil
}

// longFreelist is the count of a freelist page whose real count, which needs more than 16 bits,
// follows the header.
const longFreelist = 0xFFFF
