package datatree

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// index finds znodes by path. It is a hash table of pointers to znodes, which have their path; a map[string]*znode would
// hold every path's pointer and length a second time, and takes 28 bytes more for each znode.
//
// It is cut in shards that grow one at a time, so that no request waits for the whole to be moved. A shard is open
// addressing with linear probing; a tag of the hash in front of each pointer saves most looks at other znodes.
//
// Its seed is random, because paths come from clients, who could choose them to collide. Nothing that is visible depends
// on it.
type index struct {
	seed   maphash.Seed
	n      int
	shards [256]shard
}

type shard struct {
	tags   []uint8 // 0: free
	znodes []*znode
	n      int
}

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// len returns the number of znodes.
func (x *index) len() int { return x.n }

// get returns the znode at path, or nil. The path is not kept.
func (x *index) get(path string) *znode {
	h := maphash.String(x.seed, path)
	s := &x.shards[uint8(h)]
	if s.n == 0 {
		return nil
	}
	for i, tag := s.home(h), tagOf(h); s.tags[i] != 0; i = s.next(i) {
		if s.tags[i] == tag && s.znodes[i].path == path {
			return s.znodes[i]
		}
	}
	return nil
}

// put adds n, whose path is not there yet.
func (x *index) put(n *znode) {
	h := maphash.String(x.seed, n.path)
	s := &x.shards[uint8(h)]
	if 8*(s.n+1) > 7*len(s.tags) {
		x.resize(s, max(8, len(s.tags)*3/2))
	}
	s.put(h, n)
	x.n++
}

// drop removes n, which is there.
func (x *index) drop(n *znode) {
	h := maphash.String(x.seed, n.path)
	s := &x.shards[uint8(h)]
	hole := s.home(h)
	for s.znodes[hole] != n {
		hole = s.next(hole)
	}
	// What stands behind the hole and would not be found any more moves into it.
	for i := s.next(hole); s.tags[i] != 0; i = s.next(i) {
		home := s.home(maphash.String(x.seed, s.znodes[i].path))
		if s.distance(home, i) >= s.distance(hole, i) {
			s.tags[hole], s.znodes[hole] = s.tags[i], s.znodes[i]
			hole = i
		}
	}
	s.tags[hole], s.znodes[hole] = 0, nil
	s.n--
	x.n--
	if len(s.tags) > 64 && s.n < len(s.tags)/4 {
		x.resize(s, len(s.tags)/2)
	}
}

// all goes through the znodes, in no order.
func (x *index) all() iter.Seq[*znode] {
	return func(yield func(*znode) bool) {
		for i := range x.shards {
			for _, n := range x.shards[i].znodes {
				if n != nil && !yield(n) {
					return
				}
			}
		}
	}
}

// resize gives s that many places, more than it has znodes.
func (x *index) resize(s *shard, places int) {
	old := s.znodes
	*s = shard{tags: make([]uint8, places), znodes: make([]*znode, places)}
	for _, n := range old {
		if n != nil {
			s.put(maphash.String(x.seed, n.path), n)
		}
	}
}

func (s *shard) put(h uint64, n *znode) {
	i := s.home(h)
	for s.tags[i] != 0 {
		i = s.next(i)
	}
	s.tags[i], s.znodes[i] = tagOf(h), n
	s.n++
}

// home returns the place that a hash belongs to. The low byte of the hash has chosen the shard.
func (s *shard) home(h uint64) int {
	place, _ := bits.Mul64(h<<8, uint64(len(s.tags)))
	return int(place)
}

func (s *shard) next(i int) int {
	if i++; i == len(s.tags) {
		return 0
	}
	return i
}

// distance returns the steps from one place to the other.
func (s *shard) distance(from, to int) int {
	if to < from {
		to += len(s.tags)
	}
	return to - from
}

// tagOf takes bits that home, which looks at the highest of h<<8, does not depend on in a shard of reasonable size.
func tagOf(h uint64) uint8 { return uint8(h>>8) | 0x80 }
