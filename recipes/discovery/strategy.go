package discovery

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Strategy chooses one of the instances, of which there is at least one. A Strategy must not keep
// the slice, and must be safe for concurrent use.
type Strategy[T any] func(instances []Instance[T]) Instance[T]

// RoundRobin chooses the instances in turn.
func RoundRobin[T any]() Strategy[T] {
	var next atomic.Uint64
	return func(all []Instance[T]) Instance[T] { return all[(next.Add(1)-1)%uint64(len(all))] }
}

// Random chooses any instance.
func Random[T any]() Strategy[T] {
	return func(all []Instance[T]) Instance[T] { return all[rand.IntN(len(all))] }
}

// Sticky chooses the same instance as long as that instance is available. When the instance is
// gone, pick chooses the next.
func Sticky[T any](pick Strategy[T]) Strategy[T] {
	var (
		mu      sync.Mutex
		current identity
	)
	return func(all []Instance[T]) Instance[T] {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(all, func(in Instance[T]) bool { return in.identity() == current })
		if i >= 0 {
			return all[i]
		}
		in := pick(all)
		current = in.identity()
		return in
	}
}
