package peer

import (
	"maps"
	"sync"
)

// maxNews bounds what is remembered: ids and reasons may come from the wire.
const maxNews = 512

// news remembers what was logged, so that the same is not said at each try. The zero value has said nothing.
type news struct {
	mu   sync.Mutex
	said map[item]struct{}
}

// item is a text about a member; 0 stands for those who did not say who they are.
type item struct {
	id   uint64
	text string
}

// isNew reports whether text was not yet said of id, and remembers it.
func (n *news) isNew(id uint64, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	it := item{id, text}
	if _, ok := n.said[it]; ok {
		return false
	}
	if n.said == nil || len(n.said) >= maxNews {
		n.said = make(map[item]struct{})
	}
	n.said[it] = struct{}{}
	return true
}

// forget makes everything about id new again.
func (n *news) forget(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.said, func(it item, _ struct{}) bool { return it.id == id })
}
