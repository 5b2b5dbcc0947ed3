package cache

import (
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// treeEvents holds the events of a recursive watch for the loop. Safe for concurrent use.
type treeEvents struct {
	mu   sync.Mutex
	all  []client.Event
	wake chan struct{} // capacity 1: there may be events
}

func (t *treeEvents) add(e client.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, e)
	wakeup.Send(t.wake)
}

func (t *treeEvents) take() (all []client.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, t.all = t.all, nil
	return all
}

// handlePrepared processes the answer to a sync or to the request for the recursive watch. After a
// failure the result is the pause before the next request.
func (g *engine) handlePrepared(res result) time.Duration {
	switch {
	case res.err == nil && res.q.kind == querySync:
		g.needsSync = false
	case res.err == nil:
		g.needsWatch, g.tree = false, make(chan client.Event)
	case res.q.kind == queryTree && recipes.Refused(res.err):
		g.needsWatch = false // the server has no recursive watches: each query has its own watch
	default:
		return retryPause
	}
	return 0
}

func (g *engine) handleTreeEvents() {
	for _, e := range g.treeEvents.take() {
		if e.Type == recipes.EventMissed {
			g.missed = true
			continue
		}
		g.handleTreeEvent(e)
	}
}

// handleTreeEvent does for an event of the recursive watch what the watches of the queries would
// do. An event that is older than the present session causes superfluous requests.
func (g *engine) handleTreeEvent(e client.Event) {
	entry, parent := g.find(e.Path), (*entry)(nil)
	if e.Path != g.root.path {
		parent = g.find(proto.ParentPath(e.Path))
	}
	if entry != nil && e.Type != proto.EventCreated {
		g.fireTree(entry.data, e.Type)
	}
	if entry != nil && e.Type == proto.EventDeleted {
		g.fireTree(entry.list, e.Type)
	}
	switch {
	case e.Type == proto.EventDataChanged:
	case parent != nil:
		g.fireTree(parent.list, proto.EventChildrenChanged)
	case entry != nil && e.Type == proto.EventCreated:
		g.fireTree(entry.exist, e.Type)
	}
}

func (g *engine) fireTree(q *query, event proto.EventType) {
	if q == nil || g.tree == nil {
		return
	}
	if q.state == sent {
		q.repeat = true // the answer may be from before the change
	}
	if q.fires == g.tree {
		g.handleWatch(watchEvent{q, q.fires, client.Event{Type: event}})
	}
}

func (g *engine) find(path string) *entry {
	rest, below := strings.CutPrefix(path, g.root.path)
	if !below {
		return nil
	}
	e := g.root
	for name := range strings.SplitSeq(rest, "/") {
		if name == "" { // before the first slash
			continue
		}
		if e = e.children[name]; e == nil {
			return nil
		}
	}
	return e
}
