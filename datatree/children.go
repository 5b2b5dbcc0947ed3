package datatree

import "github.com/gozkd/gozkd/proto"

// addChild appends n to its parent's children.
func (p *znode) addChild(n *znode) {
	if p.dir == nil {
		p.dir = &dir{}
	}
	n.childIdx = int32(len(p.dir.children))
	p.dir.children = append(p.dir.children, n)
	p.dir.nameBytes += len(n.name())
}

// dropChild takes n out of its parent's children; the last one takes its place.
func (p *znode) dropChild(n *znode) {
	p.dir.nameBytes -= len(n.name())
	p.dir.children = swapRemove(p.dir.children, n.childIdx, func(m *znode, i int32) { m.childIdx = i })
	if len(p.dir.children) == 0 {
		p.dir = nil
	}
}

// childrenReplyBytes returns the size of the reply to getChildren2 of p with one more child of that name, or as it is
// with "".
func (p *znode) childrenReplyBytes(name string) int {
	size := proto.ReplyHeaderBytes + 4 + proto.StatBytes
	if p.dir != nil {
		size += p.dir.nameBytes + 4*len(p.dir.children)
	}
	if name != "" {
		size += 4 + len(name)
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
