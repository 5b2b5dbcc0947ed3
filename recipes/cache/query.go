package cache

import (
	"cmp"
	"context"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// entry is a znode that the cache follows: the root, or a listed znode.
type entry struct {
	path     string
	depth    int // below the root
	children map[string]*entry
	shown    *Znode // nil if missing, not known yet, or without interest
	mzxid    int64  // the newest that was read
	pzxid    int64  // of the latest list
	czxid    int64  // of the znode whose children were listed; differs from that of shown if one of the two answers is older

	data  *query
	list  *query // nil if its children are of no interest
	exist *query // of the root only: fires on its creation
}

// each calls f with the queries about e and its descendants, except exist.
func (e *entry) each(f func(*query)) {
	for _, q := range []*query{e.data, e.list} {
		if q != nil {
			f(q)
		}
	}
	for _, child := range e.children {
		child.each(f)
	}
}

// first returns the query that must be answered first: the children matter only if the data exist.
func (e *entry) first() *query { return cmp.Or(e.data, e.list) }

// newest returns the greatest Czxid that is shown for e and its descendants, 0 if none.
func (e *entry) newest() int64 {
	var zxid int64
	if e.shown != nil {
		zxid = int64(e.shown.Stat.Czxid)
	}
	for _, child := range e.children {
		zxid = max(zxid, child.newest())
	}
	return zxid
}

// query is a fact about a znode, which is read again and again. At most one of its requests is in
// flight, so answers come in order.
type query struct {
	kind    queryKind
	entry   *entry
	state   queryState
	repeat  bool // the request in flight may be too old
	dropped bool // its result is no longer needed

	unanswered bool // since the connection was made; the cache is not complete before it is answered
	epoch      int  // of the request in flight
	listed     bool // the znode was listed while the request was in flight
	wasOlder   bool // the latest answer was older than the cache

	fires <-chan client.Event // nil after firing
}

type queryKind int8

const (
	queryData queryKind = iota
	queryChildren
	queryExists
	querySync // prepares for the queries
	queryTree // the same: sets the recursive watch
)

// prepares reports whether the query is not about a znode, but comes before those that are.
func (q *query) prepares() bool { return q.kind >= querySync }

type queryState int8

const (
	idle queryState = iota
	queued
	sent
)

type result struct {
	q       *query
	data    []byte
	names   []string
	stat    *proto.Stat
	fires   <-chan client.Event
	err     error
	session *recipes.Session    // in which it was answered; nil if that is not certain
	tree    <-chan client.Event // the recursive watch when it was asked
}

type watchEvent struct {
	q     *query
	fires <-chan client.Event
	event client.Event // zero if another receiver got it
}

// ask sends the request of q and waits for the answer. A query needs no watch of its own if tree,
// the recursive watch, is not nil.
func (g *engine) ask(ctx context.Context, q *query, tree <-chan client.Event) result {
	res := result{q: q, session: g.client.Session(), fires: tree, tree: tree}
	path := q.entry.path
	switch own := tree == nil; {
	case q.kind == querySync:
		res.err = g.client.Sync(ctx, path)
	case q.kind == queryTree:
		// Ends with the session: the next session's queries need a watch that was set before them.
		in, cancel := res.session.Within(ctx)
		context.AfterFunc(in, cancel)
		if res.err = g.client.WatchPersistent(in, path, true, g.treeEvents.add); res.err != nil {
			cancel()
		}
	case q.kind == queryData && own:
		res.data, res.stat, res.fires, res.err = g.client.GetW(ctx, path)
	case q.kind == queryData:
		res.data, res.stat, res.err = g.client.Get(ctx, path)
	case q.kind == queryChildren && own:
		res.names, res.stat, res.fires, res.err = g.client.ChildrenW(ctx, path)
	case q.kind == queryChildren:
		res.names, res.stat, res.err = g.client.Children(ctx, path)
	case own:
		res.stat, res.fires, res.err = g.client.ExistsW(ctx, path)
	default:
		res.stat, res.err = g.client.Exists(ctx, path)
	}
	if g.client.Session() != res.session {
		res.session = nil
	}
	return res
}

func (g *engine) forwardWatch(ctx context.Context, q *query, fires <-chan client.Event) {
	// Ends when the watch fires, at the latest with the znode's deletion, or with ctx. Close waits.
	g.running.Go(func() {
		var (
			e    client.Event
			more bool
		)
		select {
		case e, more = <-fires:
		case <-ctx.Done():
			return
		}
		if more { // the channel is closed next; until then the Client counts the watch as armed
			select {
			case <-fires:
			case <-ctx.Done():
				return
			}
		}
		select {
		case g.watchEvents <- watchEvent{q, fires, e}:
		case <-ctx.Done():
		}
	})
}

// fired reports whether a watch has fired or does not exist.
func fired(fires <-chan client.Event) bool { return fires == nil || wakeup.Fired(fires) }
