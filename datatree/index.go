package datatree

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// index finds the numbers of znodes by path. It is a hash table of numbers, whose znodes have the path; a map[string]znodeID would hold
// every path's pointer and length a second time.
//
// It is cut in shards that grow one at a time, so that no request waits for the whole to be moved. A shard is open
// addressing with linear probing. Beside each number stands a half of the hash, which saves looks at other znodes, and at all
// of them when a shard is resized or a hole is filled.
//
// Its seed is random, because paths come from clients, who could choose them to collide. Nothing that is visible depends
// on it.
type index struct {
	seed   maphash.Seed
	n      int
	shards [256]shard
}

type shard struct {
	slots []slot
	n     int
}

// slot is a half of the hash in the high half, and the number in the low one. 0 is a free slot.
type slot uint64

func (e slot) hash() uint32 { return uint32(e >> 32) }
func (e slot) id() znodeID  { return znodeID(e) }

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// len returns the number of znodes.
func (x *index) len() int { return x.n }

// locate returns a path's shard and the half of its hash that counts there.
func (x *index) locate(path string) (*shard, uint32) {
	h := maphash.String(x.seed, path)
	return &x.shards[uint8(h)], uint32(h >> 32)
}

// get returns the znode at path, or nil. The path is not kept.
func (x *index) get(znodes *pool[znode], path string) *znode {
	s, h := x.locate(path)
	if s.n == 0 {
		return nil
	}
	for i := s.home(h); s.slots[i] != 0; i = s.next(i) {
		if s.slots[i].hash() == h {
			if n := znodes.at(s.slots[i].id()); n.path() == path {
				return n
			}
		}
	}
	return nil
}

// put adds n, whose path is not there yet.
func (x *index) put(n *znode) {
	s, h := x.locate(n.path())
	if 16*(s.n+1) > 13*len(s.slots) {
		s.resize(max(8, len(s.slots)*5/4))
	}
	s.put(slot(h)<<32 | slot(n.id))
	s.n++
	x.n++
}

// drop removes n, which is there.
func (x *index) drop(n *znode) {
	s, h := x.locate(n.path())
	hole := s.home(h)
	for s.slots[hole].id() != n.id {
		hole = s.next(hole)
	}
	// What stands behind the hole and would not be found any more moves into it.
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

// resize gives s that many slots at least, more than it has znodes.
func (s *shard) resize(slots int) {
	old := s.slots
	s.slots = slices.Grow([]slot(nil), slots)
	s.slots = s.slots[:cap(s.slots)] // what the allocator rounds up
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

// home returns the slot that a hash belongs to.
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

// distance returns the steps from one slot to the other.
func (s *shard) distance(from, to int) int {
	if to < from {
		to += len(s.slots)
	}
	return to - from
}
