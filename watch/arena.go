package watch

const chunkLen = 256

// arena holds nodes of one type under numbers from 1 on. Chunks are never moved, so growing copies nothing and a
// pointer from at stays good until the node is released. Released nodes are used again; memory is not given back.
type arena[T any] struct {
	chunks []*[chunkLen]T
	free   []uint32
	top    uint32 // the highest number ever given out
}

func (a *arena[T]) at(n uint32) *T { return &a.chunks[n/chunkLen][n%chunkLen] }

// alloc returns the number of a zero node.
func (a *arena[T]) alloc() uint32 {
	if last := len(a.free) - 1; last >= 0 {
		n := a.free[last]
		a.free = a.free[:last]
		return n
	}
	a.top++
	if int(a.top/chunkLen) == len(a.chunks) {
		a.chunks = append(a.chunks, new([chunkLen]T))
	}
	return a.top
}

// release zeroes node n, so that it holds on to nothing, and keeps it for alloc.
func (a *arena[T]) release(n uint32) {
	var zero T
	*a.at(n) = zero
	a.free = append(a.free, n)
}
