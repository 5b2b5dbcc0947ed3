package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The layout of a page is that of bbolt's internal/common.
const (
	pageHeader    = 16 // id, flags, count, overflow
	pageElement   = 16 // of a branch: pos, key size, page; of a leaf: flags, pos, key size, value size
	bucketHeader  = 16 // root page, sequence
	flagBranch    = 0x01
	flagLeaf      = 0x02
	flagMeta      = 0x04
	flagFreelist  = 0x10
	elementPair   = 0x00 // flags of a leaf's element
	elementBucket = 0x01
)

// page is a page with its overflow pages.
type page struct {
	id    uint64
	data  []byte
	flags uint16
	count int    // of elements
	pages uint64 // 1 plus the overflow pages
}

func (g *page) branch(i int) (key []byte, child uint64, err error) {
	at := pageHeader + i*pageElement
	e := g.data[at : at+pageElement]
	key, err = g.slice(i, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), 0)
	return key, word(e[8:]), err
}

func (g *page) leaf(i int) (flags uint32, key, value []byte, err error) {
	at := pageHeader + i*pageElement
	u32 := binary.NativeEndian.Uint32
	e := g.data[at : at+pageElement]
	n, more := u32(e[8:]), u32(e[12:])
	both, err := g.slice(i, u32(e[4:]), n, more)
	if err != nil {
		return 0, nil, nil, err
	}
	return u32(e), both, both[n : n+more : n+more], nil
}

// slice returns n bytes at pos, from element i's start, with the next more bytes in its capacity.
func (g *page) slice(i int, pos, n, more uint32) ([]byte, error) {
	from := uint64(pageHeader+i*pageElement) + uint64(pos)
	if from+uint64(n)+uint64(more) > uint64(len(g.data)) {
		return nil, fmt.Errorf("page %d, element %d: its key or value lies outside the page", g.id, i)
	}
	return g.data[from : from+uint64(n) : from+uint64(n)+uint64(more)], nil
}

func (g *page) errKind(want string) error {
	return fmt.Errorf("page %d: flags %#x and %d elements, want a %s page", g.id, g.flags, g.count, want)
}

// checkRoom reports an error if the elements don't fit into the page.
func (g *page) checkRoom() error {
	if pageHeader+g.count*pageElement > len(g.data) {
		return fmt.Errorf("page %d: no room for its %d elements", g.id, g.count)
	}
	return nil
}

// inlinePage returns the only leaf of a bucket that is stored inside its parent's element.
func inlinePage(b []byte) (page, error) {
	if len(b) < pageHeader || binary.NativeEndian.Uint16(b[8:]) != flagLeaf {
		return page{}, errors.New("an inline bucket without a leaf page")
	}
	g := page{data: b, flags: flagLeaf, count: int(binary.NativeEndian.Uint16(b[10:]))}
	return g, g.checkRoom()
}

func appendPageHeader(b []byte, id uint64, flags uint16, count, pages int) []byte {
	b = binary.NativeEndian.AppendUint64(b, id)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint16(b, uint16(count))
	return binary.NativeEndian.AppendUint32(b, uint32(pages-1))
}
