package cache

import (
	"math"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// handleFound processes an answer about an existing znode. False: the cache knows a newer state.
func (g *engine) handleFound(res result) bool {
	switch res.q.kind {
	case queryData:
		return g.handleData(res)
	case queryChildren:
		return g.handleChildren(res)
	default:
		g.requestRoot(res.q)
		return true
	}
}

// requestRoot reads the root, which exists.
func (g *engine) requestRoot(exist *query) {
	first := g.root.first()
	if exist.unanswered {
		g.setUnanswered(first, true)
	}
	g.request(first)
}

func (g *engine) handleData(res result) bool {
	q, e, stat := res.q, res.q.entry, res.stat
	old := e.shown
	if int64(stat.Mzxid) < e.mzxid { // Mzxid never falls, even if the znode is created again
		return false
	}
	e.mzxid = int64(stat.Mzxid)
	// The listed children are gone with the previous znode, unless the list is of the new znode.
	switch created := old == nil || old.Stat.Czxid != stat.Czxid; {
	case !created:
	case e.list != nil && e.czxid >= int64(stat.Czxid):
		if fired(e.list.fires) {
			g.request(e.list)
		}
	default:
		lists, oldest := g.lists(e, stat), int64(stat.Czxid)
		if !lists {
			oldest = math.MaxInt64
		}
		for name, child := range e.children {
			if child.newest() < oldest {
				g.remove(e, name)
			}
		}
		g.drop(e.list)
		e.list = nil
		if lists {
			e.list = &query{kind: queryChildren, entry: e}
			g.setUnanswered(e.list, q.unanswered)
			g.request(e.list)
		}
	}
	if now := (&Znode{Path: e.path, Data: res.data, Stat: *stat}); !same(old, now) {
		e.shown = now
		g.view.set(e.path, now)
	}
	return true
}

// lists reports whether the children of e are cached and e can have any.
func (g *engine) lists(e *entry, stat *proto.Stat) bool {
	return e.depth < g.scope.depth && stat.EphemeralOwner == 0 && (g.scope.enter == nil || g.scope.enter(e.path))
}

func (g *engine) handleChildren(res result) bool {
	q, e, stat := res.q, res.q.entry, res.stat
	if int64(stat.Pzxid) < e.pzxid { // never falls either
		return false
	}
	e.pzxid, e.czxid = int64(stat.Pzxid), int64(stat.Czxid)
	if g.scope.names {
		now := &Znode{Path: e.path, Stat: *stat, names: res.names}
		slices.Sort(now.names)
		e.shown = now
		g.view.set(e.path, now)
		return true
	}
	there := make(map[string]struct{}, len(res.names))
	for _, name := range res.names {
		there[name] = struct{}{}
		child := e.children[name]
		if child == nil {
			child = g.add(e, name)
			g.setUnanswered(child.data, q.unanswered)
			g.request(child.data)
			continue
		}
		switch d := child.data; {
		case d.state == sent:
			d.listed = true
		case fired(d.fires): // no watch: the znode was missing, or was created again
			g.request(d)
		}
	}
	for name, child := range e.children {
		// A child that is newer than the list exists, and the list's watch has fired.
		if _, is := there[name]; !is && child.newest() <= int64(stat.Pzxid) {
			g.remove(e, name)
		}
	}
	return true
}

// handleMissing processes the answer that a znode is missing. The result is false if q was
// requested again.
//
// The content stays for the moment: this answer may be older than others about a new znode of that
// name. The parent's list has changed, or will, and decides.
func (g *engine) handleMissing(q *query) bool {
	switch {
	case q.entry == g.root:
		g.setUnanswered(g.root.exist, q.unanswered)
		g.request(g.root.exist)
	case q.kind == queryData && q.listed:
		g.request(q) // the znode may have been created between the two answers
		return false
	}
	return true
}

// handleRefused hides a znode that may not be read, like a missing znode. The parent's next list
// causes another request.
func (g *engine) handleRefused(e *entry) {
	g.hide(e)
	g.drop(e.list)
	e.list, e.data.fires = nil, nil
}

func (g *engine) add(parent *entry, name string) *entry {
	child := &entry{path: znodepath.Join(parent.path, name), depth: parent.depth + 1}
	child.data = &query{kind: queryData, entry: child}
	if parent.children == nil {
		parent.children = make(map[string]*entry)
	}
	parent.children[name] = child
	return child
}

func (g *engine) remove(parent *entry, name string) {
	child := parent.children[name]
	delete(parent.children, name)
	g.hide(child)
	g.drop(child.data)
	g.drop(child.list)
}

func (g *engine) hide(e *entry) {
	for name := range e.children {
		g.remove(e, name)
	}
	if e.shown != nil {
		e.shown = nil
		g.view.set(e.path, nil)
	}
}
