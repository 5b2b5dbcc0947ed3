package datatree

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/gozkd/gozkd/internal/slab"
)

// index finds znodes by path. It is a hash table of znode numbers; a map[string]znodeID would store
// pointer and length of every path again.
//
// The table consists of shards that grow separately, so that no request waits for a resize of the
// whole table. A shard uses open addressing with linear probing. A slot also has half of the hash:
// most lookups then skip znodes that do not match, and a resize or the filling of a hole reads no
// znodes.
//
// The seed is random, because clients could otherwise choose paths that collide. Nothing visible
// depends on the seed.
type index struct {
	seed   maphash.Seed
	n      int
	shards [256]shard
}

type shard struct {
	slots []slot
	n     int
}

// slot holds half of the hash in its high half and the number in its low half. 0 is a free slot.
type slot uint64

func (e slot) hash() uint32 { return uint32(e >> 32) }
func (e slot) id() znodeID  { return znodeID(e) }

func newIndex() index { return index{seed: maphash.MakeSeed()} }

func (x *index) len() int { return x.n }

func (x *index) locate(path string) (*shard, uint32) {
	h := maphash.String(x.seed, path)
	return &x.shards[uint8(h)], uint32(h >> 32)
}

// get returns the znode at path, or nil. It does not retain path.
func (x *index) get(znodes *slab.Slab[znode], path string) *znode {
	s, h := x.locate(path)
	if s.n == 0 {
		return nil
	}
	for i := s.home(h); s.slots[i] != 0; i = s.next(i) {
		if s.slots[i].hash() == h {
			if n := znodes.At(s.slots[i].id()); n.path() == path {
				return n
			}
		}
	}
	return nil
}

// put adds n, whose path must be new.
func (x *index) put(n *znode) {
	s, h := x.locate(n.path())
	if 16*(s.n+1) > 13*len(s.slots) {
		s.resize(max(8, len(s.slots)*5/4))
	}
	s.put(slot(h)<<32 | slot(n.id))
	s.n++
	x.n++
}

// drop removes n, which must be present.
func (x *index) drop(n *znode) {
	s, h := x.locate(n.path())
	hole := s.home(h)
	for s.slots[hole].id() != n.id {
		hole = s.next(hole)
	}
	// Entries after the hole that a search would no longer find move into it.
	for i := s.next(hole); s.slots[i] != 0; i = s.next(i) {
		home := s.home(s.slots[i].hash())
		if s.distance(home, i) >= s.distance(hole, i) {
			s.slots[hole] = s.slots[i]
			hole = i
		}
	}
	s.slots[hole] = 0
	s.n--
	x.n--
	if len(s.slots) > 64 && s.n < len(s.slots)*3/8 {
		s.resize(len(s.slots) * 5 / 8)
	}
}

// resize gives s at least this many slots, which must be more than its znodes.
func (s *shard) resize(slots int) {
	old := s.slots
	s.slots = slices.Grow([]slot(nil), slots)
	s.slots = s.slots[:cap(s.slots)] // use what the allocator rounds up to
	clear(s.slots)
	for _, e := range old {
		if e != 0 {
			s.put(e)
		}
	}
}

func (s *shard) put(e slot) {
	i := s.home(e.hash())
	for s.slots[i] != 0 {
		i = s.next(i)
	}
	s.slots[i] = e
}

// home returns the slot where the search for a hash begins.
func (s *shard) home(h uint32) int {
	place, _ := bits.Mul64(uint64(h)<<32, uint64(len(s.slots)))
	return int(place)
}

func (s *shard) next(i int) int {
	if i++; i == len(s.slots) {
		return 0
	}
	return i
}

func (s *shard) distance(from, to int) int {
	if to < from {
		to += len(s.slots)
	}
	return to - from
}
