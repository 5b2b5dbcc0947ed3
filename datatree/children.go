package datatree

import (
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

func (s *znodeStore) addChild(p, child *znode) {
	var d *dir
	if p.dir == 0 {
		p.dir, d = s.dirs.Alloc()
	} else {
		d = s.dirs.At(p.dir)
	}
	child.childIdx = int32(len(d.children))
	d.children = append(d.children, child.id)
	d.nameBytes += len(child.name())
	size := listBytes(d.nameBytes, len(d.children))
	s.lists.longest = max(s.lists.longest, size)
	if s.lists.tooLong != nil && size > s.lists.limit && !s.lists.told[p.id] {
		if s.lists.told == nil {
			s.lists.told = make(map[znodeID]bool)
		}
		s.lists.told[p.id] = true
		s.lists.tooLong(p.path(), size)
	}
}

// childLists tells of long lists of children, see Options. Lengths are those of replies in bytes.
type childLists struct {
	limit   int
	tooLong func(path string, bytes int)
	longest int
	// told holds the parents that tooLong was called for. A parent is removed when its list has
	// become shorter than half the limit: a list whose length swings around the limit is told once.
	told map[znodeID]bool
}

// LongLists calls f for each znode whose reply to getChildren2 is longer than Options.ListBytes, in
// the order of their paths.
func (s *znodeStore) LongLists(f func(path string, bytes int)) {
	long := make(map[string]int)
	for id := range s.lists.told {
		p := s.at(id)
		d := s.dirs.At(p.dir)
		if size := listBytes(d.nameBytes, len(d.children)); size > s.lists.limit {
			long[p.path()] = size
		}
	}
	for _, path := range slices.Sorted(maps.Keys(long)) {
		f(path, long[path])
	}
}

// listBytes returns the size of the reply to getChildren2 with n names of that many bytes.
func listBytes(nameBytes, n int) int {
	return proto.ReplyHeaderBytes + 4 + nameBytes + 4*n + proto.StatBytes
}

// dropChild removes a child from p. The last child takes its index.
func (s *znodeStore) dropChild(p, child *znode) {
	d := s.dirs.At(p.dir)
	d.nameBytes -= len(child.name())
	s.unindexChild(p.dir, child, d.children)
	d.children = swapRemove(d.children, child.childIdx, func(m znodeID, i int32) { s.at(m).childIdx = i })
	if s.lists.told[p.id] && listBytes(d.nameBytes, len(d.children)) < s.lists.limit/2 || len(d.children) == 0 {
		delete(s.lists.told, p.id)
	}
	if len(d.children) == 0 {
		s.dirs.Free(p.dir)
		p.dir = 0
	}
}

// childrenReplyBytes returns the size of getChildren2's reply for n with one more child so named.
func (s *znodeStore) childrenReplyBytes(n *znode, name string) int {
	d := s.dirs.At(n.dir) // number 0 has no children
	return listBytes(d.nameBytes+len(name), len(d.children)+1)
}

// swapRemove removes element i of s and moves the last element there, for which it calls moved. It
// reallocates when three quarters of s are unused.
func swapRemove(s []znodeID, i int32, moved func(znodeID, int32)) []znodeID {
	last := len(s) - 1
	if int(i) != last {
		s[i] = s[last]
		moved(s[i], i)
	}
	s = s[:last]
	if cap(s) > 64 && len(s) < cap(s)/4 {
		s = append(make([]znodeID, 0, cap(s)/2), s...)
	}
	return s
}
