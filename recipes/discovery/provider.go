package discovery

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Provider returns instances of a service, one at a time. Its other methods are those of Cache.
// Safe for concurrent use.
type Provider[T any] struct {
	*Cache[T]
	pick   Strategy[T]
	accept []func(Instance[T]) bool
	down   *downInstances
}

// Provider returns a Provider of a service, which does nothing before Start. pick chooses the next
// instance among those that every accept function accepts; nil means RoundRobin.
func (d *Discovery[T]) Provider(name string, pick Strategy[T], policy DownPolicy, accept ...func(Instance[T]) bool) *Provider[T] {
	if pick == nil {
		pick = RoundRobin[T]()
	}
	return &Provider[T]{Cache: d.Cache(name), pick: pick, accept: slices.Clone(accept), down: newDownInstances(policy)}
}

// Instance returns an instance for one use, or ErrNoInstance. No request is sent.
func (p *Provider[T]) Instance() (Instance[T], error) {
	all := p.Instances()
	if len(all) == 0 {
		return Instance[T]{}, ErrNoInstance
	}
	return p.pick(all), nil
}

// Instances returns all instances that Instance may return now: enabled, accepted, and not down.
func (p *Provider[T]) Instances() []Instance[T] {
	return slices.DeleteFunc(p.Cache.Instances(), func(in Instance[T]) bool {
		return in.Disabled || p.down.contains(in.identity()) || slices.ContainsFunc(p.accept, func(ok func(Instance[T]) bool) bool { return !ok(in) })
	})
}

// NoteError reports that an instance could not be used. After the DownPolicy's number of errors,
// Instance does not return the instance for a while.
func (p *Provider[T]) NoteError(in Instance[T]) { p.down.noteError(in.identity()) }

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
