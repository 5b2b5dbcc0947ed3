// Package slab stores values under numbers.
package slab

import (
	"iter"
	"math/bits"
)

// Slab stores values of one type in pages. A value is identified by a number, which takes half the
// space of a pointer and costs the garbage collector nothing. Values do not move: a pointer to a
// value is valid until the value is freed; then its number may be reused. 0 is never a number. The
// zero Slab is empty.
//
// A page without values is released, unless no other page has room: otherwise alternating calls of
// Alloc and Free would allocate a page each time. Random deletes leave few pages empty; new values
// fill the gaps.
type Slab[T any] struct {
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

// Len returns the number of values.
func (s *Slab[T]) Len() int { return s.n }

// At returns the value with a number, which must be in use.
func (s *Slab[T]) At(id uint32) *T { return &s.pages[id>>pageBits][id%pageSlots] }

// Peek returns the slot of any number, or nil if there is none. A free slot holds the zero value.
func (s *Slab[T]) Peek(id uint32) *T {
	if page := id >> pageBits; int(page) < len(s.pages) && s.pages[page] != nil {
		return s.At(id)
	}
	return nil
}

// Alloc returns a zero value. It panics if all numbers are in use, which limits prevent.
func (s *Slab[T]) Alloc() (uint32, *T) {
	if len(s.open) == 0 {
		s.addPage()
	}
	page := s.open[len(s.open)-1]
	u := &s.use[page]
	for u.taken[u.full] == ^uint64(0) {
		u.full++
	}
	slot := int(u.full)*64 + bits.TrailingZeros64(^u.taken[u.full])
	u.taken[u.full] |= 1 << (slot % 64)
	if u.n++; u.n == pageSlots {
		s.shut(page)
	}
	s.n++
	id := page<<pageBits | uint32(slot)
	return id, s.At(id)
}

// Free zeroes a value, so that it references nothing, and gives its number back.
func (s *Slab[T]) Free(id uint32) {
	page, slot := id>>pageBits, id%pageSlots
	var zero T
	s.pages[page][slot] = zero
	u := &s.use[page]
	u.taken[slot/64] &^= 1 << (slot % 64)
	u.full = min(u.full, int16(slot/64))
	u.n--
	s.n--
	if u.openAt < 0 {
		u.openAt = int32(len(s.open))
		s.open = append(s.open, page)
	}
	if u.n == 0 && len(s.open) > 1 {
		s.shut(page)
		s.pages[page] = nil
		s.gone = append(s.gone, page)
	}
}

// All returns the values, unsorted. None may be freed meanwhile.
func (s *Slab[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for page := range s.pages {
			for word, taken := range s.use[page].taken {
				if page == 0 && word == 0 {
					taken &^= 1
				}
				for ; taken != 0; taken &= taken - 1 {
					if !yield(&s.pages[page][word*64+bits.TrailingZeros64(taken)]) {
						return
					}
				}
			}
		}
	}
}

func (s *Slab[T]) addPage() {
	page := uint32(len(s.pages))
	if last := len(s.gone) - 1; last >= 0 {
		page, s.gone = s.gone[last], s.gone[:last]
	} else {
		if page == maxPages {
			panic("slab: all numbers are in use")
		}
		s.pages, s.use = append(s.pages, nil), append(s.use, pageUse{})
	}
	s.pages[page] = new([pageSlots]T)
	u := pageUse{openAt: int32(len(s.open))}
	if page == 0 {
		u.taken[0], u.n = 1, 1 // 0 is never a number
	}
	s.use[page] = u
	s.open = append(s.open, page)
}

func (s *Slab[T]) shut(page uint32) {
	last := len(s.open) - 1
	at := s.use[page].openAt
	s.open[at] = s.open[last]
	s.use[s.open[at]].openAt = at
	s.use[page].openAt = -1
	s.open = s.open[:last]
}
