package faultproxy

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Rules are the armed faults, in the order in which they were added. The first rule that matches a
// request applies to it. The zero value has no rules. Several gates may share Rules. Safe for
// concurrent use.
type Rules struct {
	mu   sync.Mutex // guards the counts of all rules, and writes to list
	list atomic.Pointer[[]*Armed]
}

// Add arms a fault. The error lists everything that is wrong with it.
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

// armed returns the rules. The slice is immutable.
func (r *Rules) armed() []*Armed {
	if list := r.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Armed is a fault in Rules. Safe for concurrent use.
type Armed struct {
	rules   *Rules
	fault   Fault
	meaning meaning
	times   int           // < 0: until removed
	done    chan struct{} // closed when the fault has happened as often as it should
	gone    chan struct{} // closed by removal

	// The fields below are guarded by rules.mu.
	taken   int // requests taken; the replies of taken-count are still to come
	count   int
	removed bool
}

// Remove removes the rule. Its delays end, and a reply that the rule was to drop is delivered. A
// request that the rule has failed stays failed.
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

// Count returns how often the fault has happened.
func (a *Armed) Count() int {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	return a.count
}

// Done returns a channel that is closed when the fault has happened as often as it should, or once
// for a rule that stays until it is removed. Remove does not close it.
func (a *Armed) Done() <-chan struct{} { return a.done }

// String describes the fault and how often it has happened.
func (a *Armed) String() string { return fmt.Sprintf("%v; happened %d times", a.fault, a.Count()) }

// take claims a request for the rule. It returns false if the rule may not claim any more requests.
func (a *Armed) take() bool {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	if a.removed || a.times > 0 && a.taken >= a.times {
		return false
	}
	a.taken++
	return true
}

// giveBack returns a claim for a request that will not be answered.
func (a *Armed) giveBack() {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	a.taken--
}

// happened counts a fault that has happened. If the rule was removed, it returns false and does not
// count.
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
