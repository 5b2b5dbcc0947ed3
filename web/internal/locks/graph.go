package locks

import (
	"cmp"
	"slices"
)

// Wait says that a session waits for another session.
type Wait struct {
	From, To int64  // sessions
	Lock     string // path of the lock
	Any      bool   // From also waits for others, of which one is enough
}

// Cycle is a group of sessions that wait for each other. If no client gives up, they wait forever.
// A client with several threads can hold with one and wait with another, so that its session may
// let go all the same.
type Cycle struct {
	Sessions []int64 // ascending
	Waits    []Wait
}

// waiting is a contender that keeps a session waiting.
type waiting struct {
	lock     string
	any      bool
	sessions []int64 // without its own
}

// Waits returns which session waits for which, by lock and place.
func Waits(all []Lock) []Wait {
	var found []Wait
	for i := range all {
		for session, w := range all[i].waits() {
			for _, to := range w.sessions {
				found = append(found, Wait{session, to, w.lock, w.any})
			}
		}
	}
	return found
}

// waits ranges over the sessions that wait in a lock. Of a session with several places only the
// first counts: with the others it waits for itself at most, as its threads do.
func (l *Lock) waits() func(yield func(int64, waiting) bool) {
	return func(yield func(int64, waiting) bool) {
		for i := range l.Queue {
			c := &l.Queue[i]
			if c.Session == 0 || c.Repeated || !c.isWaiting() {
				continue
			}
			w := waiting{lock: l.Path, any: c.Any}
			for _, before := range l.past(i) {
				if s := l.Queue[before].Session; s != 0 && s != c.Session && !slices.Contains(w.sessions, s) {
					w.sessions = append(w.sessions, s)
				}
			}
			if len(w.sessions) > 0 && !yield(c.Session, w) {
				return
			}
		}
	}
}

// past returns the places that the contender at i waits for. A place of a session that has an
// earlier place says nothing about that session, so those that it waits for follow.
func (l *Lock) past(i int) []int {
	places := slices.Clone(l.Queue[i].Before)
	for n := 0; n < len(places); n++ {
		if c := &l.Queue[places[n]]; c.Repeated && !c.Any {
			for _, p := range c.Before {
				if !slices.Contains(places, p) {
					places = append(places, p)
				}
			}
		}
	}
	return places
}

// Cycles returns the groups of sessions that wait for each other across locks.
func Cycles(all []Lock) []Cycle {
	waits := make(map[int64][]waiting)
	for i := range all {
		for session, w := range all[i].waits() {
			waits[session] = append(waits[session], w)
		}
	}
	release(waits)
	var found []Cycle
	for _, group := range components(waits) {
		c := Cycle{Sessions: group}
		for _, from := range group {
			for _, w := range waits[from] {
				for _, to := range w.sessions {
					if slices.Contains(group, to) {
						c.Waits = append(c.Waits, Wait{from, to, w.lock, w.any})
					}
				}
			}
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b Cycle) int { return cmp.Compare(a.Sessions[0], b.Sessions[0]) })
	return found
}

// release removes the waits that can end, until only those are left that depend on each other.
func release(waits map[int64][]waiting) {
	waiters := make(map[int64][]int64) // by the session that they wait for
	var check []int64
	for s, all := range waits {
		check = append(check, s)
		for _, w := range all {
			for _, to := range w.sessions {
				waiters[to] = append(waiters[to], s)
			}
		}
	}
	for len(check) > 0 {
		s := check[len(check)-1]
		check = check[:len(check)-1]
		left := slices.DeleteFunc(waits[s], func(w waiting) bool {
			stuck := func(to int64) bool { return len(waits[to]) > 0 }
			if w.any {
				return slices.ContainsFunc(w.sessions, func(to int64) bool { return !stuck(to) })
			}
			return !slices.ContainsFunc(w.sessions, stuck)
		})
		if len(left) > 0 {
			waits[s] = left
		} else if _, waited := waits[s]; waited {
			delete(waits, s)
			check = append(check, waiters[s]...)
		}
	}
}

// components returns the strongly connected groups of at least two sessions, by Tarjan's algorithm.
func components(waits map[int64][]waiting) (groups [][]int64) {
	index, low := make(map[int64]int), make(map[int64]int)
	var stack []int64
	onStack := make(map[int64]bool)
	var visit func(int64)
	visit = func(s int64) {
		index[s] = len(index) + 1
		low[s] = index[s]
		stack, onStack[s] = append(stack, s), true
		for _, w := range waits[s] {
			for _, to := range w.sessions {
				if index[to] == 0 {
					visit(to)
					low[s] = min(low[s], low[to])
				} else if onStack[to] {
					low[s] = min(low[s], index[to])
				}
			}
		}
		if low[s] != index[s] {
			return
		}
		at := slices.Index(stack, s)
		group := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, member := range group {
			onStack[member] = false
		}
		if len(group) > 1 {
			slices.Sort(group)
			groups = append(groups, group)
		}
	}
	for s := range waits {
		if index[s] == 0 {
			visit(s)
		}
	}
	return groups
}
