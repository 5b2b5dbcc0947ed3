package mirror

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
)

// maxChanges bounds the paths that are remembered. If more change, the whole subtrees are compared.
const maxChanges = 10_000

// changes collects the changes of the source since the last take.
type changes struct {
	root   string
	signal chan struct{} // has an element after a change

	mu  sync.Mutex
	set todo
}

// todo holds the paths to compare.
type todo struct {
	whole   bool                // the whole subtrees
	created bool                // an event told of a creation
	rels    map[string]struct{} // paths below the root, if whole is false
}

func newChanges(root string) *changes {
	return &changes{root: root, signal: make(chan struct{}, 1), set: todo{rels: map[string]struct{}{}}}
}

// event takes an event of the source.
func (c *changes) event(e client.Event) {
	switch {
	case e.Type == client.EventSession && e.State == client.Connected:
		c.compareAll() // events may be missing
	case e.Type == client.EventSession || !subtree.Within(e.Path, c.root):
	case c.root == "/" && subtree.Within(e.Path, "/zookeeper"):
	case e.Type == proto.EventCreated || e.Type == proto.EventDeleted || e.Type == proto.EventDataChanged:
		rel := e.Path
		if c.root != "/" || rel == "/" {
			rel = strings.TrimPrefix(rel, c.root)
		}
		c.add(rel, e.Type == proto.EventCreated)
	}
}

func (c *changes) add(rel string, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.set.rels) >= maxChanges {
		c.set.whole, c.set.rels = true, nil
	}
	if c.set.whole {
		return
	}
	c.set.rels[rel] = struct{}{}
	c.set.created = c.set.created || created
	wakeup.Send(c.signal)
}

func (c *changes) compareAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set.whole, c.set.rels = true, nil
	wakeup.Send(c.signal)
}

// take returns the changes since the last take.
func (c *changes) take() (t todo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, c.set = c.set, todo{rels: map[string]struct{}{}}
	return t
}

// paths returns the argument of subtree.Mirror.Run, which is nil for the whole subtrees.
func (t *todo) paths() []string { return slices.Collect(maps.Keys(t.rels)) }
