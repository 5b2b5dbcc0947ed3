package checkpoint

import "encoding/binary"

// level holds the elements of one height that are not written yet: about two pages of them.
type level struct {
	data     []byte // keys and values of the elements
	elements []element
}

// element is an element of a page. Its key and value are in the data of its level.
type element struct {
	key, value int    // bytes
	child      uint64 // in a branch: the page below; in a leaf: the kind
}

func (v *level) add(key, value []byte, child uint64) {
	v.data = append(append(v.data, key...), value...)
	v.elements = append(v.elements, element{len(key), len(value), child})
}

// sizeOf returns the size of a page of the first n elements.
func (v *level) sizeOf(n int) int {
	size := pageHeader + n*pageElement
	for _, e := range v.elements[:n] {
		size += e.key + e.value
	}
	return size
}

func (v *level) size() int { return pageHeader + len(v.elements)*pageElement + len(v.data) }

// appendPage appends a page of the first n elements, without the zeros up to its end.
func (v *level) appendPage(b []byte, id uint64, flags uint16, n, pages int) []byte {
	b = appendPageHeader(b, id, flags, n, pages)
	at := pageHeader + n*pageElement // of the element's key in the page
	for i, e := range v.elements[:n] {
		pos := uint32(at - pageHeader - i*pageElement)
		if flags == flagBranch {
			b = binary.NativeEndian.AppendUint32(b, pos)
			b = binary.NativeEndian.AppendUint32(b, uint32(e.key))
			b = binary.NativeEndian.AppendUint64(b, e.child)
		} else {
			b = binary.NativeEndian.AppendUint32(b, uint32(e.child))
			b = binary.NativeEndian.AppendUint32(b, pos)
			b = binary.NativeEndian.AppendUint32(b, uint32(e.key))
			b = binary.NativeEndian.AppendUint32(b, uint32(e.value))
		}
		at += e.key + e.value
	}
	return append(b, v.data[:at-pageHeader-n*pageElement]...)
}

// minElements is how many elements a page must have: bbolt requires siblings below a branch.
func minElements(height int) int { return min(height+1, 2) }

// fullPercent is how full a page is made if more pages follow: values often grow by a few bytes.
const fullPercent = 90

// add adds an element at the end of a height, and writes a page as soon as there are two.
func (m *merge) add(height int, key, value []byte, child uint64) error {
	for height >= len(m.levels) {
		m.levels = append(m.levels, level{})
	}
	v := &m.levels[height]
	v.add(key, value, child)
	for v.size() > 2*m.pageSize {
		n, size := 0, pageHeader
		for n < len(v.elements) {
			size += pageElement + v.elements[n].key + v.elements[n].value
			if n >= minElements(height) && size > m.pageSize*fullPercent/100 {
				break
			}
			n++
		}
		if len(v.elements)-n < minElements(height) {
			return nil
		}
		if err := m.writePage(height, n); err != nil {
			return err
		}
		v = &m.levels[height]
	}
	return nil
}

// flush writes all pending elements of a height: as one page, or as two of about the same size.
func (m *merge) flush(height int) error {
	v := &m.levels[height]
	if n := len(v.elements); n >= 2*minElements(height) && v.size() > m.pageSize {
		half := minElements(height)
		size := v.sizeOf(half)
		for half < n-minElements(height) && size < v.size()/2 {
			size += pageElement + v.elements[half].key + v.elements[half].value
			half++
		}
		if err := m.writePage(height, half); err != nil {
			return err
		}
	}
	if n := len(m.levels[height].elements); n > 0 {
		return m.writePage(height, n)
	}
	return nil
}

// writePage writes the first n elements of a height as a page, and adds it to the height above.
func (m *merge) writePage(height, n int) error {
	v := &m.levels[height]
	flags, _ := kindAt(height)
	size := v.sizeOf(n)
	id, err := m.append(size, func(b []byte, id uint64, pages int) []byte { return v.appendPage(b, id, flags, n, pages) })
	if err != nil {
		return err
	}
	if err := m.add(height+1, v.data[:v.elements[0].key], nil, id); err != nil {
		return err
	}
	v = &m.levels[height] // add may have moved it
	cut := size - pageHeader - n*pageElement
	v.data, v.elements = v.data[:copy(v.data, v.data[cut:])], v.elements[:copy(v.elements, v.elements[n:])]
	return nil
}
