package watch

const chunkLen = 256

// arena stores records of a type, numbered from 1. Chunks never move: growing copies nothing, and
// a pointer that at returned is valid until the record is released. Released records are reused;
// memory is not returned.
type arena[T any] struct {
	chunks []*[chunkLen]T
	free   []uint32
	top    uint32 // the highest number in use so far
}

func (a *arena[T]) at(n uint32) *T { return &a.chunks[n/chunkLen][n%chunkLen] }

// alloc returns the number of a zero record.
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

// release zeroes record n, so that it references nothing, and keeps it for alloc.
func (a *arena[T]) release(n uint32) {
	var zero T
	*a.at(n) = zero
	a.free = append(a.free, n)
}
