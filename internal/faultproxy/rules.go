package faultproxy

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Rules are the faults that are armed, in the order in which they were added: the first one that matches takes a request.
// The zero value has none. Gates may share them. Safe for concurrent use.
type Rules struct {
	mu   sync.Mutex // guards the counts of all rules, and changes of list
	list atomic.Pointer[[]*Armed]
}

// Add arms a fault. The error says all that is wrong with it.
func (r *Rules) Add(f Fault) (*Armed, error) {
	m, err := f.check()
	if err != nil {
		return nil, err
	}
	a := &Armed{rules: r, fault: f, meaning: m, times: f.Times, done: make(chan struct{}), gone: make(chan struct{})}
	if a.times == 0 {
		a.times = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append(slices.Clone(r.armed()), a)
	r.list.Store(&list)
	return a, nil
}

// Clear removes all rules.
func (r *Rules) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.armed() {
		a.removeLocked()
	}
}

// armed returns the rules; the slice is never changed.
func (r *Rules) armed() []*Armed {
	if list := r.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Armed is a fault that was added to Rules. Safe for concurrent use.
type Armed struct {
	rules   *Rules
	fault   Fault
	meaning meaning
	times   int           // < 0: until removed
	done    chan struct{} // closed when it happened as often as it should
	gone    chan struct{} // closed when it was removed

	// guarded by rules.mu
	taken   int // requests that it took; the answers of taken-count are still to come
	count   int
	removed bool
}

// Remove takes the rule away. Delays that it made end, and an answer that it was to drop arrives. A request that it made fail
// before keeps failing.
func (a *Armed) Remove() {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	a.removeLocked()
}

func (a *Armed) removeLocked() {
	if !a.removed {
		a.removed = true
		close(a.gone)
		a.unlist()
	}
}

func (a *Armed) unlist() {
	list := slices.DeleteFunc(slices.Clone(a.rules.armed()), func(b *Armed) bool { return a == b })
	a.rules.list.Store(&list)
}

// Count returns how often it happened.
func (a *Armed) Count() int {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	return a.count
}

// Done returns a channel that is closed when it has happened as often as it should, for a rule that stays until it is removed
// when it happened first. Remove does not close it.
func (a *Armed) Done() <-chan struct{} { return a.done }

// String describes the fault and says how often it happened.
func (a *Armed) String() string { return fmt.Sprintf("%v; happened %d times", a.fault, a.Count()) }

// take lets the rule take a request, if it has any left to take.
func (a *Armed) take() bool {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	if a.removed || a.times > 0 && a.taken >= a.times {
		return false
	}
	a.taken++
	return true
}

// giveBack arms the rule again for a request that it took and that will not be answered.
func (a *Armed) giveBack() {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	a.taken--
}

// happened counts. It returns false, and does not count, if the rule was removed.
func (a *Armed) happened() bool {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	if a.removed {
		return false
	}
	a.count++
	if a.count == max(a.times, 1) {
		close(a.done)
	}
	if a.count == a.times {
		a.unlist()
	}
	return true
}
