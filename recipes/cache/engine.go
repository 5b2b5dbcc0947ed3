package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

const (
	// maxInFlight is the number of requests that a cache sends at a time.
	maxInFlight = 64
	// retryPause is the pause before a failed request is repeated while connected, after the
	// Client's own retries.
	retryPause = 250 * time.Millisecond
	// deletionPause is for how long the parent's list may confirm a deletion that a watch reported.
	deletionPause = time.Second
	// refusedPause is the pause before the root is read again after the server refused.
	refusedPause = 5 * time.Second
)

type scope struct {
	rootData bool // the root's own data
	names    bool // the names of the root's children instead of data
	depth    int  // levels below the root
	// enter reports whether to cache the children of a znode. nil means always.
	enter func(path string) bool
	// recursive uses a single recursive watch of the tree instead of a watch per query, if the
	// server has such watches.
	recursive bool
}

// engine keeps copies of znodes. Its loop owns all fields except view and those that Start and
// Close use; requests and watches report to the loop.
type engine struct {
	client *recipes.Client
	root   *entry
	scope  scope
	view   *view

	connected   bool
	session     *recipes.Session // in which queries are answered
	needsSync   bool             // the server may lag behind the cache: sync before any query
	needsWatch  bool             // set the recursive watch before any query
	preparing   bool             // a sync or the recursive watch is requested
	missed      bool             // the recursive watch may have missed changes
	epoch       int              // number of connections so far
	unanswered  int              // number of unanswered queries
	inFlight    int
	queue       []*query           // in state queued, except the exists query
	retry       <-chan time.Time   // the end of a pause after an error; nil: no pause
	deletions   []reportedDeletion // oldest first
	deletionDue <-chan time.Time   // of the oldest of deletions

	results     chan result // has room for all requests in flight
	watchEvents chan watchEvent
	// tree is the watch of all queries while the recursive watch is set, and nil otherwise. It
	// never fires: treeEvents does.
	tree       <-chan client.Event
	treeEvents treeEvents
	running    sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil before Start
	closed bool
	done   chan struct{} // closed when the loop has ended
}

func newEngine(c *recipes.Client, path string, s scope) *engine {
	g := &engine{
		client: c,
		scope:  s,
		view: &view{
			znodes:    make(map[string]map[string]*Znode),
			listeners: make(map[*listener]struct{}),
		},
		results:     make(chan result, maxInFlight+1),
		watchEvents: make(chan watchEvent),
		treeEvents:  treeEvents{wake: make(chan struct{}, 1)},
		done:        make(chan struct{}),
	}
	g.root = &entry{path: path}
	g.root.exist = &query{kind: queryExists, entry: g.root}
	if s.rootData {
		g.root.data = &query{kind: queryData, entry: g.root}
	} else {
		g.root.list = &query{kind: queryChildren, entry: g.root}
	}
	return g
}

// loop follows the znodes until ctx ends or the Client is closed.
func (g *engine) loop(ctx context.Context) {
	states := g.client.States(ctx)
	for {
		if g.connected && g.retry == nil {
			g.dispatch(ctx)
		}
		if g.connected && g.unanswered == 0 {
			g.view.setComplete(true)
		}
		select {
		case s, more := <-states:
			if !more {
				g.view.end(endCause(ctx))
				return
			}
			g.handleState(s)
			g.retry = nil
		case res := <-g.results:
			if pause := g.handleResult(ctx, res); pause > 0 && g.retry == nil {
				g.retry = time.After(pause)
			}
		case e := <-g.watchEvents:
			g.handleWatch(e)
		case <-g.treeEvents.wake:
			g.handleTreeEvents()
		case <-g.retry:
			g.retry = nil
		case <-g.deletionDue:
			g.checkDeletions()
		}
	}
}

func endCause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, recipes.ErrClosed) {
		return fmt.Errorf("%w: %w", recipes.ErrClosed, err)
	}
	return recipes.ErrClosed
}

// handleState follows the state of the connection. After a reconnect everything is read again,
// unless the events of the recursive watch say what has changed: other watches, and those of a
// wrapped connection, may have missed changes.
func (g *engine) handleState(s recipes.ConnState) {
	switch s {
	case recipes.Connected, recipes.Reconnected:
		g.view.setComplete(false) // in case the state in between was missed
		session := g.client.Session()
		g.missed = g.missed || g.tree == nil || g.session != session
		g.handleTreeEvents()
		if !g.missed {
			g.connected = true
			g.awaitRequested()
			return
		}
		g.missed = false
		if g.session != session {
			g.needsSync = g.needsSync || g.session != nil
			g.needsWatch, g.tree = g.scope.recursive, nil
		}
		g.session, g.connected = session, true
		g.epoch++
		g.setUnanswered(g.root.exist, false)
		g.root.each(func(q *query) {
			g.setUnanswered(q, true)
			g.request(q)
		})
	case recipes.Suspended, recipes.Lost, recipes.ReadOnly:
		g.connected = false
		g.view.setComplete(false)
	}
}

// awaitRequested keeps the cache incomplete until everything that was requested is answered.
func (g *engine) awaitRequested() {
	wait := func(q *query) {
		if q.state != idle {
			g.setUnanswered(q, true)
		}
		if q.repeat {
			q.epoch = -1 // the answer under way does not count
		}
	}
	wait(g.root.exist)
	g.root.each(wait)
}

// request makes sure that q is sent after this moment.
func (g *engine) request(q *query) {
	switch {
	case q.dropped:
	case q.state == sent:
		q.repeat = true
	case q.state == idle:
		q.state = queued
		if q.kind != queryExists {
			g.queue = append(g.queue, q)
		}
	}
}

func (g *engine) setUnanswered(q *query, unanswered bool) {
	if q.unanswered == unanswered {
		return
	}
	q.unanswered = unanswered
	if unanswered {
		g.unanswered++
	} else {
		g.unanswered--
	}
}

func (g *engine) drop(q *query) {
	if q != nil {
		q.dropped = true
		g.setUnanswered(q, false)
	}
}

func (g *engine) dispatch(ctx context.Context) {
	if g.needsSync || g.needsWatch {
		if !g.preparing {
			g.preparing = true
			kind := querySync
			if g.needsWatch {
				kind = queryTree
			}
			g.send(ctx, &query{kind: kind, entry: g.root})
		}
		return
	}
	switch exist := g.root.exist; {
	case exist.state == queued && g.inFlight == 0:
		g.sendQuery(ctx, exist)
		return
	case exist.state != idle:
		return // sent alone: a missing root then cannot be older news than another answer
	}
	for g.inFlight < maxInFlight && len(g.queue) > 0 {
		q := g.queue[0]
		g.queue = g.queue[1:]
		if !q.dropped {
			g.sendQuery(ctx, q)
		}
	}
}

func (g *engine) sendQuery(ctx context.Context, q *query) {
	q.state, q.epoch, q.repeat, q.listed = sent, g.epoch, false, false
	g.inFlight++
	g.send(ctx, q)
}

func (g *engine) send(ctx context.Context, q *query) {
	tree := g.tree
	// Ends when the Client has answered, soon after the end of ctx at the latest. Close waits.
	g.running.Go(func() { g.results <- g.ask(ctx, q, tree) })
}

// handleResult processes an answer. After a failure it returns the pause before the next request.
func (g *engine) handleResult(ctx context.Context, res result) time.Duration {
	q := res.q
	if q.prepares() {
		g.preparing = false
	} else {
		g.inFlight--
		q.state = idle
	}
	switch {
	case q.dropped:
		return 0
	case g.client.Session() != g.session:
		g.connected = false // until the state says so: answers may now come from a session that g does not know
		fallthrough
	case res.session != g.session, res.tree != g.tree:
		if !q.prepares() {
			g.request(q)
		}
		return 0
	case q.prepares():
		return g.handlePrepared(res)
	case res.err == nil:
		if q.kind == queryExists && res.stat == nil {
			g.hide(g.root)
		} else if !g.handleFound(res) {
			if q.wasOlder {
				g.startOver()
				return 0
			}
			q.wasOlder, g.needsSync = true, true
			g.request(q)
			return 0
		}
		q.wasOlder = false
		if q.kind != queryExists || res.stat == nil {
			g.awaitWatch(ctx, q, res.fires)
		}
		if q.entry == g.root {
			g.view.setRefused(nil)
		}
	case errors.Is(res.err, proto.ErrNoNode):
		if q.fires == g.tree { // which tells the parent's list of a creation, and not q
			q.fires = nil
		}
		if !g.handleMissing(q) {
			return 0
		}
	case errors.Is(res.err, proto.ErrNoAuth), errors.Is(res.err, proto.ErrBadArguments):
		if q.entry == g.root {
			g.request(q)
			g.view.setRefused(res.err)
			return refusedPause
		}
		g.handleRefused(q.entry)
	default:
		g.request(q)
		return retryPause
	}
	if q.epoch == g.epoch {
		g.setUnanswered(q, false)
	}
	if q.repeat {
		g.request(q)
	}
	return 0
}

// startOver discards everything that is known, after an answer that was older than the cache
// although the server had synced. So the servers lost their data, or were restored from a backup,
// and their zxids cannot be compared with earlier zxids.
func (g *engine) startOver() {
	g.view.setComplete(false)
	root := g.root
	g.hide(root)
	root.mzxid, root.pzxid = 0, 0
	first := root.first()
	if root.data != nil {
		g.drop(root.list)
		root.list = nil
	}
	g.setUnanswered(first, true)
	g.request(first)
}

// awaitWatch makes sure that the loop learns when fires fires, once per channel. Reads may share
// the watch, which may have fired before q was read: then q is requested again, for a new watch. A
// later event is newer than the answer.
func (g *engine) awaitWatch(ctx context.Context, q *query, fires <-chan client.Event) {
	switch {
	case q.dropped:
	case fired(fires):
		q.fires = nil
		g.request(q)
	case fires != q.fires:
		if q.fires = fires; fires != g.tree {
			g.forwardWatch(ctx, q, fires)
		}
	}
}

func (g *engine) handleWatch(e watchEvent) {
	q := e.q
	if q.dropped || e.fires != q.fires {
		return
	}
	q.fires = nil
	if e.event.Type == recipes.EventNotWatching && !q.unanswered {
		g.needsSync = true // the session has ended, so the next answer may be older than the last
	}
	deleted := e.event.Type == proto.EventDeleted
	switch {
	case q.state != idle: // will be read, and awaitWatch then checks the watch
	case q.kind == queryExists:
		g.requestRoot(q)
	case deleted && q.entry == g.root && (q.kind == queryData || q.entry.data == nil):
		g.request(g.root.exist)
	case deleted:
		g.deletions = append(g.deletions, reportedDeletion{q, time.Now().Add(deletionPause)})
		if len(g.deletions) == 1 {
			g.deletionDue = time.After(deletionPause)
		}
	default:
		g.request(q)
	}
}

// reportedDeletion is a query whose watch reported the znode's deletion. The query is not sent
// again at once: the watch of the parent's list fires too, and the list says whether the znode
// exists. No list follows if the event is older than the znode that was read, or newer than the
// list; then checkDeletions sends the query.
type reportedDeletion struct {
	q     *query
	until time.Time
}

// checkDeletions requests the znodes whose deletion no list has confirmed in time.
func (g *engine) checkDeletions() {
	now := time.Now()
	for len(g.deletions) > 0 && !g.deletions[0].until.After(now) {
		q := g.deletions[0].q
		known := q.kind == queryData || q.entry.shown != nil // otherwise the data come first and request the list
		if q.state == idle && q.fires == nil && known {
			g.request(q)
		}
		g.deletions = g.deletions[1:]
	}
	if len(g.deletions) > 0 {
		g.deletionDue = time.After(g.deletions[0].until.Sub(now))
	}
}
