package datatree

import (
	"hash/maphash"

	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/proto"
)

const (
	// PrefetchPaths is how many paths Prefetch takes.
	PrefetchPaths = 16
	// prefetchFrom is the number of znodes from which prefetching pays: a smaller tree is mostly in
	// the processor's cache.
	prefetchFrom = 1 << 14
)

// PrefetchPays reports whether the tree is large enough for Prefetch to save time.
func (s *znodeStore) PrefetchPays() bool { return s.index.len() >= prefetchFrom || invariants.Enabled }

// Prefetch reads the memory that requests for these paths, at most PrefetchPaths, are going to
// read, and changes nothing. In a large tree a request spends most of its time waiting for memory:
// for a slot of the index, then for the znode, then for its blob. Here the processor waits for the
// slots of all paths at once, then for all znodes, then for all blobs.
func (s *znodeStore) Prefetch(paths []string) {
	if len(paths) < 2 {
		return // nothing to overlap
	}
	var hashes [PrefetchPaths]uint64
	var ids [PrefetchPaths]znodeID
	paths = paths[:min(len(paths), PrefetchPaths)]
	for i, path := range paths {
		hashes[i] = maphash.String(s.index.seed, path)
	}
	for i := range paths {
		ids[i] = s.index.guess(hashes[i])
	}
	var seen byte
	for i := range paths {
		if ids[i] == 0 {
			continue
		}
		seen |= s.at(ids[i]).blob().touch()
	}
	keep(seen)
}

func (s *znodeStore) prefetchOps(ops []proto.MultiOp) {
	if len(ops) == 1 || !s.PrefetchPays() {
		return
	}
	var paths [PrefetchPaths]string
	n := min(len(ops), len(paths))
	for i := range ops[:n] {
		paths[i] = ops[i].Path
	}
	s.Prefetch(paths[:n])
}

// prefetch touches the items from each i on that is a multiple of PrefetchPaths.
func prefetch[T any](items []T, i int, touch func(*T) byte) {
	if i%PrefetchPaths != 0 {
		return
	}
	var seen byte
	for k := range items[i:min(len(items), i+PrefetchPaths)] {
		seen |= touch(&items[i+k])
	}
	keep(seen)
}

// touchPath reads the path of a znode, which may be gone.
func (s *znodeStore) touchPath(id *znodeID) byte {
	if n := s.znodes.Peek(*id); n != nil && n.first != nil {
		return n.blob().text[0]
	}
	return 0
}

// touch reads a byte of the beginning, the middle and the end.
func (b blob) touch() byte { return b.text[0] | b.text[len(b.text)/2] | b.text[len(b.text)-1] }

// guess returns the number of the znode that a path with this hash most likely has, or 0.
func (x *index) guess(hash uint64) znodeID {
	s, h := &x.shards[uint8(hash)], uint32(hash>>32)
	if s.n == 0 {
		return 0
	}
	i := s.home(h)
	for range 4 { // mostly on one cache line
		if s.slots[i].hash() == h {
			return s.slots[i].id()
		}
		i = s.next(i)
	}
	return 0
}

// keep makes the compiler keep the loads that b depends on.
//
//go:noinline
func keep(byte) {}
