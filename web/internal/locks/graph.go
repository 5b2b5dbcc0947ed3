package locks

import (
	"iter"
	"slices"
	"sort"
)

// Wait says that a session waits for another session.
type Wait struct {
	From     Session `json:"from"`
	To       Session `json:"to"`
	Lock     string  `json:"lock"`               // path of the lock
	Any      bool    `json:"any,omitempty"`      // From also waits for others, of which one is enough
	Election bool    `json:"election,omitempty"` // From waits to lead: its process goes on meanwhile
}

// Cycle is a loop of sessions of which each waits for the next. If no client gives up, they wait
// forever. A client with several threads can hold with one and wait with another, so that its
// session may let go all the same.
type Cycle struct {
	Sessions []Session `json:"sessions"` // in the order of Waits; the least id is the first
	Waits    []Wait    `json:"waits"`    // each leads to the session of the next, the last to the first
}

// waiting is a contender that keeps a session waiting.
type waiting struct {
	Wait               // without To
	sessions []Session // that it waits for, without its own
}

func (w *waiting) to(s Session) Wait {
	wait := w.Wait
	wait.To = s
	return wait
}

// Waits returns which session waits for which, by lock and place.
func Waits(all []Lock) []Wait {
	found := []Wait{}
	for i := range all {
		for w := range all[i].waits() {
			for _, to := range w.sessions {
				found = append(found, w.to(to))
			}
		}
	}
	return found
}

// waits ranges over the sessions that wait in a lock. Of a session with several places only the
// first counts: with the others it waits for itself at most, as its threads do.
func (l *Lock) waits() iter.Seq[waiting] {
	return func(yield func(waiting) bool) {
		for i := range l.Queue {
			c := &l.Queue[i]
			if c.Session == 0 || c.Repeated || len(c.Before) == 0 {
				continue
			}
			w := waiting{Wait: Wait{From: c.Session, Lock: l.Path, Any: c.Any, Election: l.Kind == Election}}
			for _, before := range l.past(i) {
				if s := l.Queue[before].Session; s != 0 && s != c.Session && !slices.Contains(w.sessions, s) {
					w.sessions = append(w.sessions, s)
				}
			}
			if len(w.sessions) > 0 && !yield(w) {
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

// Cycles returns loops of sessions that wait for each other across locks: of each group that can
// reach each other, a shortest one through its least session. No election is part of a loop,
// because it keeps nobody from letting go of a lock.
func Cycles(all []Lock) []Cycle {
	waits := make(map[Session][]waiting)
	for i := range all {
		for w := range all[i].waits() {
			if !w.Election {
				waits[w.From] = append(waits[w.From], w)
			}
		}
	}
	release(waits)
	found := []Cycle{}
	for _, group := range components(waits) {
		found = append(found, shortest(group, waits))
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Sessions[0] < found[j].Sessions[0] })
	return found
}

// shortest searches from the first session of a group, breadth first, until it is back.
func shortest(group []Session, waits map[Session][]waiting) (c Cycle) {
	first := group[0]
	by := make(map[Session]Wait) // that led to a session
	for at := []Session{first}; by[first].To == 0; at = at[1:] {
		for _, w := range waits[at[0]] {
			for _, to := range w.sessions {
				_, inGroup := slices.BinarySearch(group, to)
				if _, seen := by[to]; inGroup && !seen {
					by[to] = w.to(to)
					at = append(at, to)
				}
			}
		}
	}
	for s := first; len(c.Waits) == 0 || s != first; s = by[s].From {
		c.Waits = append(c.Waits, by[s])
	}
	slices.Reverse(c.Waits)
	for _, w := range c.Waits {
		c.Sessions = append(c.Sessions, w.From)
	}
	return c
}

// release removes the waits that can end, until only those are left that depend on each other.
func release(waits map[Session][]waiting) {
	waiters := make(map[Session][]Session) // by the session that they wait for
	var check []Session
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
			stuck := func(to Session) bool { return len(waits[to]) > 0 }
			if w.Any {
				return slices.ContainsFunc(w.sessions, func(to Session) bool { return !stuck(to) })
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
func components(waits map[Session][]waiting) (groups [][]Session) {
	index, low := make(map[Session]int), make(map[Session]int)
	var stack []Session
	onStack := make(map[Session]bool)
	var visit func(Session)
	visit = func(s Session) {
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
