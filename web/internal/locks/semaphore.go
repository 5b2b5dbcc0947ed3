package locks

import (
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	locksDir     = "locks"     // Curator: SEMAPHORE/locks, SEMAPHORE/leases
	leasesDir    = "leases"    //
	kazooLocks   = "-__lock__" // kazoo: SEMAPHORE, and a lock beside it
	kazooLayout  = "kazoo semaphore"
	maxLeaseText = 10 // digits in the data of kazoo's semaphore
)

// kazooLeases recognizes kazoo's semaphore: its data are a number, its children have random names.
func kazooLeases(d *Directory) (Lock, bool) {
	if len(d.Data) > maxLeaseText || len(d.Children) == 0 {
		return Lock{}, false
	}
	limit, err := strconv.Atoi(string(d.Data))
	if err != nil || limit < 1 {
		return Lock{}, false
	}
	l := Lock{Path: d.Path, Kind: Semaphore, Layout: kazooLayout, Limit: limit}
	for i := range d.Children {
		z := &d.Children[i]
		if !onlyHex.MatchString(z.Name) || z.Session == 0 {
			return Lock{}, false
		}
		c := contender(d.Path, z)
		c.Role, c.Holds = "lease", true
		l.Queue = append(l.Queue, c)
	}
	sort.Slice(l.Queue, func(i, j int) bool { return l.Queue[i].czxid < l.Queue[j].czxid })
	return l, true
}

// combine joins the leases of a semaphore with the mutex beside them, whose contenders wait.
func combine(all []Lock) []Lock {
	byPath := make(map[string]*Lock, len(all))
	for i := range all {
		byPath[all[i].Path] = &all[i]
	}
	used := make(map[string]bool)
	for i := range all {
		l := &all[i]
		if l.Kind != Semaphore {
			continue
		}
		mutexPath := l.Path + kazooLocks
		if l.Layout != kazooLayout {
			if path.Base(l.Path) != leasesDir {
				continue
			}
			l.Path = strings.TrimSuffix(l.Path, "/"+leasesDir)
			mutexPath = l.Path + "/" + locksDir
		}
		if mutex := byPath[mutexPath]; mutex != nil && mutex.Kind == Mutex {
			l.wait(mutex)
			used[mutexPath] = true
		}
	}
	return slices.DeleteFunc(all, func(l Lock) bool { return l.Kind == Mutex && used[l.Path] })
}

// wait appends the contenders of the semaphore's mutex; the first of them, which holds it, waits
// for a lease. Curator creates leases before it counts them: these are not held yet.
func (l *Lock) wait(mutex *Lock) {
	first := mutex.Queue[0]
	if l.Layout != kazooLayout {
		held := slices.DeleteFunc(l.Queue, func(c Contender) bool { return c.Session == first.Session && c.czxid > first.czxid })
		if len(held) < len(l.Queue) {
			l.Limit = max(len(held), 1) // all leases that there are
		}
		l.Queue = held
	}
	n := len(l.Queue)
	waits := l.Limit > 0 && n >= l.Limit
	for i, c := range mutex.Queue {
		for j := range c.Before {
			c.Before[j] += n
		}
		c.Holds = false
		if i == 0 && waits {
			c.Any = true
			for j := range n {
				c.Before = append(c.Before, j)
			}
		}
		l.Queue = append(l.Queue, c)
	}
}
