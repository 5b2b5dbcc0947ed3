package cache

import (
	"math"
	"slices"

	"github.com/go-zookeeper/zk"
)

// takeFound takes what was read of a znode that is there. It returns false if the cache knows it newer.
func (g *engine) takeFound(res result) bool {
	switch res.r.kind {
	case readData:
		return g.takeData(res)
	case readList:
		return g.takeList(res)
	default:
		g.passOn(res.r)
		return true
	}
}

// passOn has the first znode read, which is there.
func (g *engine) passOn(exist *reading) {
	first := g.root.data
	if first == nil {
		first = g.root.list
	}
	if exist.open {
		g.setOpen(first, true)
	}
	g.need(first)
}

func (g *engine) takeData(res result) bool {
	r, e, stat := res.r, res.r.entry, res.stat
	old := e.shown
	if stat.Mzxid < e.mzxid { // which never falls, also when the znode is created again
		return false
	}
	e.mzxid = stat.Mzxid
	// What was listed is gone with the znode that had it, unless the listing was faster.
	switch created := old == nil || old.Stat.Czxid != stat.Czxid; {
	case !created:
	case e.list != nil && e.czxid >= stat.Czxid:
		if fired(e.list.fires) {
			g.need(e.list)
		}
	default:
		lists, oldest := g.lists(e, stat), stat.Czxid
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
			e.list = &reading{kind: readList, entry: e}
			g.setOpen(e.list, r.open)
			g.need(e.list)
		}
	}
	if now := (&Znode{Path: e.path, Data: res.data, Stat: *stat}); !same(old, now) {
		e.shown = now
		g.view.show(e.path, now)
	}
	return true
}

// lists reports whether the children of a znode are of interest, and there may be any.
func (g *engine) lists(e *entry, stat *zk.Stat) bool {
	return e.depth < g.scope.depth && !ephemeral(stat.EphemeralOwner) && (g.scope.enter == nil || g.scope.enter(e.path))
}

// ephemeral tells the owner's session from the marks of containers and TTL znodes, which may have children.
func ephemeral(owner int64) bool {
	const container, ttl = -1 << 63, 0xff
	return owner != 0 && owner != container && uint64(owner)>>56 != ttl
}

func (g *engine) takeList(res result) bool {
	r, e, stat := res.r, res.r.entry, res.stat
	if stat.Pzxid < e.pzxid { // as with mzxid
		return false
	}
	e.pzxid, e.czxid = stat.Pzxid, stat.Czxid
	if g.scope.names {
		now := &Znode{Path: e.path, Stat: *stat, names: res.names}
		slices.Sort(now.names)
		e.shown = now
		g.view.show(e.path, now)
		return true
	}
	there := make(map[string]struct{}, len(res.names))
	for _, name := range res.names {
		there[name] = struct{}{}
		child := e.children[name]
		if child == nil {
			child = g.add(e, name)
			g.setOpen(child.data, r.open)
			g.need(child.data)
			continue
		}
		switch d := child.data; {
		case d.state == flying:
			d.listed = true
		case fired(d.fires): // or there is no watch: it was not there, or is there again
			g.need(d)
		}
	}
	for name, child := range e.children {
		// If something was created after the list was read, the child is there, and the watch has fired.
		if _, is := there[name]; !is && child.newest() <= stat.Pzxid {
			g.remove(e, name)
		}
	}
	return true
}

// takeGone takes that there was no znode. It returns false if r is to be read again at once.
//
// What was there stays for the moment: this answer may be older than others that have shown what is below a new znode of that name. The
// znode above has been changed, or will be found to be, and its list says what is there.
func (g *engine) takeGone(r *reading) bool {
	switch {
	case r.entry == g.root:
		g.setOpen(g.root.exist, r.open)
		g.need(g.root.exist)
	case r.kind == readData && r.listed:
		g.need(r) // it may have been created between the two answers
		return false
	}
	return true
}

// takeRefused takes that a znode may not be read. From now on it is as one that was not there: the next list above has it read, and then
// what is below it.
func (g *engine) takeRefused(e *entry) {
	g.hide(e)
	g.drop(e.list)
	e.list, e.data.fires = nil, nil
}

func (g *engine) add(parent *entry, name string) *entry {
	child := &entry{path: join(parent.path, name), depth: parent.depth + 1}
	child.data = &reading{kind: readData, entry: child}
	if parent.children == nil {
		parent.children = make(map[string]*entry)
	}
	parent.children[name] = child
	return child
}

// remove lets go of a child, and of all below it.
func (g *engine) remove(parent *entry, name string) {
	child := parent.children[name]
	delete(parent.children, name)
	g.hide(child)
	g.drop(child.data)
	g.drop(child.list)
}

// hide shows neither the znode nor what is below it any more.
func (g *engine) hide(e *entry) {
	g.clear(e)
	if e.shown != nil {
		e.shown = nil
		g.view.show(e.path, nil)
	}
}

// clear lets go of all below the znode.
func (g *engine) clear(e *entry) {
	for name := range e.children {
		g.remove(e, name)
	}
}
