package datatree

import "github.com/gozkd/gozkd/proto"

// addChild appends a child, whose parent n is.
func (n *znode) addChild(child *znode) {
	if n.dir == nil {
		n.dir = &dir{}
	}
	child.childIdx = int32(len(n.dir.children))
	n.dir.children = append(n.dir.children, child)
	n.dir.nameBytes += len(child.name())
}

// dropChild takes a child out; the last one takes its place.
func (n *znode) dropChild(child *znode) {
	n.dir.nameBytes -= len(child.name())
	n.dir.children = swapRemove(n.dir.children, child.childIdx, func(m *znode, i int32) { m.childIdx = i })
	if len(n.dir.children) == 0 {
		n.dir = nil
	}
}

// childrenReplyBytes returns the size of the reply to getChildren2 of n if it had one more child, of that name.
func (n *znode) childrenReplyBytes(name string) int {
	size := proto.ReplyHeaderBytes + 4 + 4 + len(name) + proto.StatBytes
	if n.dir != nil {
		size += n.dir.nameBytes + 4*len(n.dir.children)
	}
	return size
}

// swapRemove removes element i of s by putting the last one there, whose place is told to moved. It gives memory back
// when three quarters of it are idle.
func swapRemove(s []*znode, i int32, moved func(*znode, int32)) []*znode {
	last := len(s) - 1
	if int(i) != last {
		s[i] = s[last]
		moved(s[i], i)
	}
	s[last] = nil
	s = s[:last]
	if cap(s) > 64 && len(s) < cap(s)/4 {
		s = append(make([]*znode, 0, cap(s)/2), s...)
	}
	return s
}
