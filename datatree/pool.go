package datatree

import (
	"iter"
	"math/bits"
)

// pool stores values of one type in pages. A value is identified by a number, which takes half the
// space of a pointer and costs the garbage collector nothing. Values do not move: a pointer to a
// value is valid until the value is freed; then its number may be reused. 0 is never a number. The
// zero pool is empty.
//
// A page without values is released, unless no other page has room: otherwise alternating calls of
// alloc and free would allocate a page each time. Random deletes leave few pages empty; new values
// fill the gaps.
type pool[T any] struct {
	pages []*[pageSlots]T // nil: released
	use   []pageUse
	open  []uint32 // pages with room; the last is filled first
	gone  []uint32 // pages that are nil
	n     int      // number of values
}

const (
	pageBits  = 10
	pageSlots = 1 << pageBits
	maxPages  = 1 << (32 - pageBits)
)

type pageUse struct {
	taken  [pageSlots / 64]uint64
	n      int16 // number of bits set in taken
	full   int16 // number of full words at the start of taken
	openAt int32 // index in open, or -1
}

func (p *pool[T]) len() int { return p.n }

// at returns the value with a number, which must be in use.
func (p *pool[T]) at(id uint32) *T { return &p.pages[id>>pageBits][id%pageSlots] }

// peek returns the slot of any number, or nil if there is none. A free slot holds the zero value.
func (p *pool[T]) peek(id uint32) *T {
	if page := id >> pageBits; int(page) < len(p.pages) && p.pages[page] != nil {
		return p.at(id)
	}
	return nil
}

// alloc returns a zero value. It panics if all numbers are in use, which limits prevent.
func (p *pool[T]) alloc() (uint32, *T) {
	if len(p.open) == 0 {
		p.addPage()
	}
	page := p.open[len(p.open)-1]
	u := &p.use[page]
	for u.taken[u.full] == ^uint64(0) {
		u.full++
	}
	slot := int(u.full)*64 + bits.TrailingZeros64(^u.taken[u.full])
	u.taken[u.full] |= 1 << (slot % 64)
	if u.n++; u.n == pageSlots {
		p.shut(page)
	}
	p.n++
	id := page<<pageBits | uint32(slot)
	return id, p.at(id)
}

func (p *pool[T]) free(id uint32) {
	page, slot := id>>pageBits, id%pageSlots
	var zero T
	p.pages[page][slot] = zero
	u := &p.use[page]
	u.taken[slot/64] &^= 1 << (slot % 64)
	u.full = min(u.full, int16(slot/64))
	u.n--
	p.n--
	if u.openAt < 0 {
		u.openAt = int32(len(p.open))
		p.open = append(p.open, page)
	}
	if u.n == 0 && len(p.open) > 1 {
		p.shut(page)
		p.pages[page] = nil
		p.gone = append(p.gone, page)
	}
}

// all returns the values, unsorted. None may be freed meanwhile.
func (p *pool[T]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for page := range p.pages {
			for word, taken := range p.use[page].taken {
				if page == 0 && word == 0 {
					taken &^= 1
				}
				for ; taken != 0; taken &= taken - 1 {
					if !yield(&p.pages[page][word*64+bits.TrailingZeros64(taken)]) {
						return
					}
				}
			}
		}
	}
}

func (p *pool[T]) addPage() {
	page := uint32(len(p.pages))
	if last := len(p.gone) - 1; last >= 0 {
		page, p.gone = p.gone[last], p.gone[:last]
	} else {
		if page == maxPages {
			panic("datatree: a pool is full")
		}
		p.pages, p.use = append(p.pages, nil), append(p.use, pageUse{})
	}
	p.pages[page] = new([pageSlots]T)
	u := pageUse{openAt: int32(len(p.open))}
	if page == 0 {
		u.taken[0], u.n = 1, 1 // 0 is never a number
	}
	p.use[page] = u
	p.open = append(p.open, page)
}

func (p *pool[T]) shut(page uint32) {
	last := len(p.open) - 1
	at := p.use[page].openAt
	p.open[at] = p.open[last]
	p.use[p.open[at]].openAt = at
	p.use[page].openAt = -1
	p.open = p.open[:last]
}
