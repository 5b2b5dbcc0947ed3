package discovery

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Strategy picks one of the instances, of which there is at least one. It does not keep the slice. Safe for concurrent use.
type Strategy[T any] func(instances []Instance[T]) Instance[T]

// RoundRobin takes them in turn.
func RoundRobin[T any]() Strategy[T] {
	var turn atomic.Uint64
	return func(all []Instance[T]) Instance[T] { return all[(turn.Add(1)-1)%uint64(len(all))] }
}

// Random takes any.
func Random[T any]() Strategy[T] {
	return func(all []Instance[T]) Instance[T] { return all[rand.IntN(len(all))] }
}

// Sticky takes the same one for as long as it is there, and lets pick choose the next.
func Sticky[T any](pick Strategy[T]) Strategy[T] {
	var (
		mu   sync.Mutex
		ours identity
	)
	return func(all []Instance[T]) Instance[T] {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(all, func(in Instance[T]) bool { return in.identity() == ours })
		if i >= 0 {
			return all[i]
		}
		in := pick(all)
		ours = in.identity()
		return in
	}
}
