package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt trusts the pages of its file. A wrong byte in one can send it round in circles, make it take memory without bound, or fault where no recover
// is. So all pages are looked at before it opens the file: that each is the one that it says, that lengths and references stay inside, that none has
// two owners, and that keys are in order. Whether the values are right is for the digest of the state. Source of the format: bbolt's
// internal/common, version 2.

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
	maxDepth     = 64
)

// pages is a walk over the pages of a file.
type pages struct {
	file io.ReaderAt
	size int64 // of a page
	end  uint64
	used []uint64 // bits
}

// checkPages walks over all pages of a bbolt file that are in use, and returns what is wrong with the first that is. With strict both meta pages must be
// good. A crash may leave one that is not: then the other one counts, and is the transaction before.
func checkPages(path string, strict bool) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	meta, size, err := newestMeta(f, info.Size(), strict)
	if err != nil {
		return err
	}
	root, freelist, end := word(meta[16:]), word(meta[32:]), word(meta[40:])
	if end < 2 || end > uint64(info.Size())/uint64(size) {
		return fmt.Errorf("it should have %d pages, and has %d", end, info.Size()/size)
	}
	p := &pages{file: f, size: size, end: end, used: make([]uint64, end/64+1)}
	p.used[0] = 3 // the metas
	if err := p.tree(root, nil, nil, 0, true); err != nil {
		return err
	}
	if freelist == ^uint64(0) { // none is kept
		return nil
	}
	return p.free(freelist)
}

func word(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// newestMeta returns the meta that counts, and the size of a page.
func newestMeta(f io.ReaderAt, size int64, strict bool) (newest []byte, pageSize int64, err error) {
	good := 0
	look := func(at int64) {
		b := make([]byte, pageHead+metaBytes)
		if _, err := f.ReadAt(b, at); err != nil {
			return // it is cut short
		}
		m := b[pageHead:]
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaBytes-8]) // a hash never fails
		u32 := binary.NativeEndian.Uint32
		if u32(m) != boltMagic || u32(m[4:]) != boltVersion || sum.Sum64() != word(m[metaBytes-8:]) || binary.NativeEndian.Uint16(b[8:]) != pageMeta {
			return
		}
		good++
		if pageSize = int64(u32(m[8:])); newest == nil || word(m[48:]) > word(newest[48:]) {
			newest = m
		}
	}
	look(0)
	if good == 0 { // the size of a page is in the other one
		for guess := int64(1024); guess <= 64<<10 && good == 0; guess *= 2 {
			look(guess)
		}
	} else if pageSize >= 1024 && pageSize < size {
		look(pageSize)
	}
	switch {
	case good == 0:
		return nil, 0, errors.New("neither of its meta pages is good")
	case strict && good == 1:
		return nil, 0, errors.New("one of its meta pages is damaged, and what the other one has may be older")
	case pageSize < 1024 || pageSize > 64<<10:
		return nil, 0, fmt.Errorf("pages of %d bytes", pageSize)
	}
	return newest, pageSize, nil
}

// page reads a page with those that it takes up. Nobody else may have them.
func (p *pages) page(id uint64) (data []byte, flags uint16, count int, err error) {
	if id < 2 || id >= p.end {
		return nil, 0, 0, fmt.Errorf("a reference to page %d of %d", id, p.end)
	}
	head := make([]byte, pageHead)
	if _, err := p.file.ReadAt(head, int64(id)*p.size); err != nil {
		return nil, 0, 0, err
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if is := word(head); is != id || overflow >= p.end-id {
		return nil, 0, 0, fmt.Errorf("page %d says that it is page %d, with %d more of %d", id, is, overflow, p.end)
	}
	for i := id; i <= id+overflow; i++ {
		if err := p.use(i); err != nil {
			return nil, 0, 0, err
		}
	}
	data = make([]byte, int64(overflow+1)*p.size)
	if _, err := p.file.ReadAt(data, int64(id)*p.size); err != nil {
		return nil, 0, 0, err
	}
	return data, binary.NativeEndian.Uint16(head[8:]), int(binary.NativeEndian.Uint16(head[10:])), nil
}

func (p *pages) use(id uint64) error {
	if p.used[id/64]&(1<<(id%64)) != 0 {
		return fmt.Errorf("page %d is used twice", id)
	}
	p.used[id/64] |= 1 << (id % 64)
	return nil
}

// tree walks over a page and all below it. Keys are at least low, and below high if that is not nil. Only the tree at the top holds buckets.
func (p *pages) tree(id uint64, low, high []byte, depth int, top bool) error {
	data, flags, count, err := p.page(id)
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return fmt.Errorf("page %d is %d levels deep", id, depth)
	case flags == pageLeaf:
		return p.leaf(id, data, count, low, high, top)
	case flags != pageBranch || count == 0:
		return fmt.Errorf("page %d has the kind %#x and %d elements", id, flags, count)
	case pageHead+count*pageElement > len(data):
		return fmt.Errorf("page %d has no room for %d elements", id, count)
	}
	keys, children := make([][]byte, count, count+1), make([]uint64, count)
	for i := range count {
		at := pageHead + i*pageElement
		e := data[at:]
		if keys[i], err = part(data, at, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), 0); err != nil {
			return fmt.Errorf("page %d, element %d: %w", id, i, err)
		}
		if children[i] = word(e[8:]); !inOrder(keys[:i+1], low, high) {
			return fmt.Errorf("page %d: key %d is out of order", id, i)
		}
	}
	keys = append(keys, high)
	for i, child := range children {
		if err := p.tree(child, keys[i], keys[i+1], depth+1, top); err != nil {
			return err
		}
	}
	return nil
}

// part returns what an element of a page refers to: n bytes at pos behind where the element is, with more bytes behind them.
func part(data []byte, at int, pos, n, more uint32) ([]byte, error) {
	from := uint64(at) + uint64(pos)
	if from+uint64(n)+uint64(more) > uint64(len(data)) {
		return nil, errors.New("it is not inside its page")
	}
	return data[from : from+uint64(n)], nil
}

// inOrder reports whether the last key may follow those before.
func inOrder(keys [][]byte, low, high []byte) bool {
	last := keys[len(keys)-1]
	if len(keys) > 1 && bytes.Compare(keys[len(keys)-2], last) >= 0 {
		return false
	}
	return bytes.Compare(low, last) <= 0 && (high == nil || bytes.Compare(last, high) < 0)
}

func (p *pages) leaf(id uint64, data []byte, count int, low, high []byte, top bool) error {
	if pageHead+count*pageElement > len(data) {
		return fmt.Errorf("page %d has no room for %d elements", id, count)
	}
	keys := make([][]byte, 0, count)
	for i := range count {
		at := pageHead + i*pageElement
		flags, pos := binary.NativeEndian.Uint32(data[at:]), binary.NativeEndian.Uint32(data[at+4:])
		keyBytes, valueBytes := binary.NativeEndian.Uint32(data[at+8:]), binary.NativeEndian.Uint32(data[at+12:])
		key, err := part(data, at, pos, keyBytes, valueBytes)
		if err != nil {
			return fmt.Errorf("page %d, element %d: %w", id, i, err)
		}
		if keys = append(keys, key); !inOrder(keys, low, high) {
			return fmt.Errorf("page %d: key %d is out of order", id, i)
		}
		switch {
		case flags == 0 && !top:
		case flags != leafBucket || !top:
			return fmt.Errorf("page %d, element %d has the kind %#x", id, i, flags)
		default:
			if err := p.bucket(data[at+int(pos)+int(keyBytes):][:valueBytes]); err != nil {
				return fmt.Errorf("page %d, bucket %q: %w", id, key, err)
			}
		}
	}
	return nil
}

// bucket looks at a bucket: it names its root, or is small enough to be its only page itself.
func (p *pages) bucket(b []byte) error {
	if len(b) < bucketHead {
		return fmt.Errorf("it has %d bytes", len(b))
	}
	if root := word(b); root != 0 {
		return p.tree(root, nil, nil, 0, false)
	}
	if b = b[bucketHead:]; len(b) < pageHead || binary.NativeEndian.Uint16(b[8:]) != pageLeaf {
		return errors.New("it has no page")
	}
	return p.leaf(0, b, int(binary.NativeEndian.Uint16(b[10:])), nil, nil, false)
}

// free looks at the list of free pages. All others were walked over before.
func (p *pages) free(id uint64) error {
	data, flags, count, err := p.page(id)
	switch {
	case err != nil:
		return err
	case flags != pageFreelist:
		return fmt.Errorf("page %d has the kind %#x, and should list the free ones", id, flags)
	}
	ids, n := data[pageHead:], uint64(count)
	if count == 0xFFFF { // the number does not fit there
		ids, n = ids[8:], word(ids)
	}
	if n > uint64(len(ids)/8) {
		return fmt.Errorf("page %d has no room for a list of %d", id, n)
	}
	for i := range n {
		free := word(ids[8*i:])
		if free < 2 || free >= p.end {
			return fmt.Errorf("page %d lists page %d of %d as free", id, free, p.end)
		}
		if err := p.use(free); err != nil {
			return fmt.Errorf("page %d lists one as free: %w", id, err)
		}
	}
	return nil
}
