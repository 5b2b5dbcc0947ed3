package meter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/histogram"
)

// maxNamespaces bounds for how many first elements of paths reads and writes are summed up. All
// others share one name, which no znode can have.
const (
	maxNamespaces   = 100
	otherNamespaces = "/others"
	// MaxNamespaceBytes bounds the name of a namespace: it is in several lines of each answer about
	// the server, and stays when the znode is deleted. Longer names count as others.
	MaxNamespaceBytes = 256
)

type namespaces struct {
	mu     sync.RWMutex
	byName map[string]*namespace
}

type namespace struct {
	name          string
	reads, writes histogram.Histogram // bytes of a path and of its data or reply
	counts        [nSpaceEvents]atomic.Int64
}

// SpaceEvent is something that is counted for the namespace of a request.
type SpaceEvent int

// The events, and the names of their counters.
const (
	OverQuota      SpaceEvent = iota // a quota refused the request
	BudgetWaits                      // the request waited for a budget
	BudgetRefusals                   // the request was refused because of a budget
	nSpaceEvents
)

var spaceEventNames = [nSpaceEvents]string{
	"quota_exceeded_error_per_namespace", "gozkd_budget_waits_per_namespace", "gozkd_budget_refusals_per_namespace",
}

// namespaceOf returns the first element of a path, "" if it has none, in the path's memory.
func namespaceOf(path string) string {
	if len(path) < 2 || path[0] != '/' {
		return ""
	}
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : 1+i]
	}
	return path[1:]
}

// get returns the namespace with that name, or, if there are too many or the name is too long, the
// namespace that the others share. name is not kept.
func (s *namespaces) get(name string) *namespace {
	if len(name) > MaxNamespaceBytes {
		name = otherNamespaces
	}
	s.mu.RLock()
	found := s.byName[name]
	if found == nil && len(s.byName) > maxNamespaces {
		found = s.byName[otherNamespaces]
	}
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byName) >= maxNamespaces {
		name = otherNamespaces
	}
	if found = s.byName[name]; found == nil {
		if s.byName == nil {
			s.byName = make(map[string]*namespace)
		}
		found = &namespace{name: strings.Clone(name)}
		s.byName[found.name] = found
	}
	return found
}

func (s *namespaces) all() []*namespace {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *namespace) int { return cmp.Compare(a.name, b.name) })
}

// reset sets everything to 0. The namespaces stay: a BatchStats that holds a namespace would
// otherwise count where nobody looks.
func (s *namespaces) reset() {
	for _, n := range s.all() {
		n.reads.Reset()
		n.writes.Reset()
		for i := range n.counts {
			n.counts[i].Store(0)
		}
	}
}
