package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

const (
	metaBytes     = 64
	boltMagic     = 0xED0CDAED
	boltVersion   = 2
	noFreelist    = ^uint64(0) // freelist of a meta page that has none
	minPageSize   = 1024
	maxPageSize   = 64 << 10
	firstDataPage = 2 // pages 0 and 1 are the meta pages
)

// metaPage is a meta page. A file has two, which transactions write in turn. The page with the
// higher txid is current.
type metaPage struct {
	raw      []byte // header and meta, as they are in the file
	pageSize int64
	root     uint64 // of the tree of buckets
	freelist uint64
	end      uint64 // number of pages of the file that count
	txid     uint64
}

// readMetaPage reads the meta page at an offset. ok is false if the page is damaged or cut short,
// which is not an error.
func readMetaPage(f io.ReaderAt, at int64) (m metaPage, ok bool, err error) {
	b := make([]byte, pageHeader+metaBytes)
	if _, err := f.ReadAt(b, at); errors.Is(err, io.EOF) {
		return metaPage{}, false, nil
	} else if err != nil {
		return metaPage{}, false, err
	}
	v := b[pageHeader:]
	u32 := binary.NativeEndian.Uint32
	m = metaPage{raw: b, pageSize: int64(u32(v[8:])), root: word(v[16:]), freelist: word(v[32:]), end: word(v[40:]), txid: word(v[48:])}
	id := m.txid % 2 // the page that this transaction writes
	ok = u32(v) == boltMagic && u32(v[4:]) == boltVersion && metaChecksum(v) == word(v[metaBytes-8:]) &&
		binary.NativeEndian.Uint16(b[8:]) == flagMeta && word(b) == id && at == int64(id)*m.pageSize
	return m, ok, nil
}

type metaPages struct {
	current  metaPage
	previous metaPage // the zero value if only one page is good
	good     int
}

// readMetaPages reads both meta pages. It returns an error if none is good.
//
// An I/O error is not corruption: without reading both meta pages we cannot tell which of them is
// current.
func readMetaPages(f io.ReaderAt, fileSize int64) (m metaPages, err error) {
	first, ok, err := readMetaPage(f, 0)
	if ok {
		m.add(first)
		if at := first.pageSize; err == nil && at >= minPageSize && at < fileSize {
			err = m.read(f, at)
		}
	} else { // only the other meta page knows the page size
		for at := int64(minPageSize); err == nil && at <= maxPageSize && m.good == 0; at *= 2 {
			err = m.read(f, at)
		}
	}
	if err == nil && m.good == 0 {
		err = errors.New("both meta pages are damaged, or the file is no checkpoint")
	}
	return m, err
}

func (m *metaPages) read(f io.ReaderAt, at int64) error {
	page, ok, err := readMetaPage(f, at)
	if ok {
		m.add(page)
	}
	return err
}

func (m *metaPages) add(page metaPage) {
	if m.good++; m.good == 1 || page.txid > m.current.txid {
		m.current, page = page, m.current
	}
	m.previous = page
}

func (m *metaPage) check(fileSize int64) error {
	switch {
	case m.pageSize < minPageSize || m.pageSize > maxPageSize:
		return fmt.Errorf("page size %d is not between %d and %d", m.pageSize, minPageSize, maxPageSize)
	case m.end < firstDataPage || m.end > uint64(fileSize)/uint64(m.pageSize):
		return fmt.Errorf("the file has %d pages, its meta page says %d", fileSize/m.pageSize, m.end)
	}
	return nil
}

// appendMetaPage appends the meta page of a transaction, without the zeros up to its end.
func appendMetaPage(b []byte, m metaPage) []byte {
	b = appendPageHeader(b, m.txid%2, flagMeta, 0, 1)
	start := len(b)
	for _, v := range [...]uint32{boltMagic, boltVersion, uint32(m.pageSize), 0} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	for _, v := range [...]uint64{m.root, 0, m.freelist, m.end, m.txid} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return binary.NativeEndian.AppendUint64(b, metaChecksum(b[start:]))
}

func metaChecksum(meta []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaBytes-8]) // a hash never fails
	return sum.Sum64()
}

func word(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
