package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

const (
	// inFlight is how many requests of one cache may be under way at one time.
	inFlight = 64
	// retryPause is before what has failed is asked for again, while there is a connection; the Client has tried more than once by then.
	retryPause = 250 * time.Millisecond
	// doubtPause is for how long a znode whose watch says that it was deleted is left to the list above.
	doubtPause = time.Second
	// refusedPause is before the first znode is read again if that is not allowed.
	refusedPause = 5 * time.Second
)

// scope says what is kept.
type scope struct {
	rootData bool // the first znode's own data
	names    bool // the names of its children, in place of data
	depth    int  // how far below the first
	// enter reports whether what is below a znode is kept. nil: of all.
	enter func(path string) bool
}

// engine keeps a copy of znodes. Its loop owns all but the view and what Start and Close need; requests and watches report to it.
type engine struct {
	client *recipes.Client
	root   *entry
	scope  scope
	view   *view

	connected bool
	session   *recipes.Session // the one that answers are to be from
	behind    bool             // the server may know less than the cache: sync comes before all else
	syncing   bool
	epoch     int // counts connections
	open      int // readings that are
	flying    int
	queue     []*reading // that are queued, but for the one of existence
	pause     *time.Timer
	doubts    []doubt // the oldest first
	doubting  *time.Timer

	results chan result // has room for all that are under way
	firings chan firing
	running sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil before Start
	closed bool
	done   chan struct{} // closed when the loop has ended
}

func newEngine(c *recipes.Client, path string, s scope) *engine {
	g := &engine{
		client:  c,
		scope:   s,
		view:    newView(),
		results: make(chan result, inFlight+1),
		firings: make(chan firing),
		pause:   time.NewTimer(0),

		doubting: time.NewTimer(0),
		done:     make(chan struct{}),
	}
	g.root = &entry{path: path}
	g.root.exist = &reading{kind: readExist, entry: g.root}
	if s.rootData {
		g.root.data = &reading{kind: readData, entry: g.root}
	} else {
		g.root.list = &reading{kind: readList, entry: g.root}
	}
	return g
}

// loop follows the znodes until ctx ends or the Client is closed.
func (g *engine) loop(ctx context.Context) {
	defer g.pause.Stop()
	defer g.doubting.Stop()
	states := g.client.States(ctx)
	paused := false
	for {
		if g.connected && !paused {
			g.dispatch(ctx)
		}
		if g.connected && g.open == 0 {
			g.view.setComplete(true)
		}
		select {
		case s, more := <-states:
			if !more {
				g.view.end(why(ctx))
				return
			}
			g.follow(s)
			paused = false
		case res := <-g.results:
			if pause := g.take(ctx, res); pause > 0 && !paused {
				paused = true
				g.pause.Reset(pause)
			}
		case f := <-g.firings:
			g.fire(f)
		case <-g.pause.C:
			paused = false
		case <-g.doubting.C:
			g.settle()
		}
	}
}

// why says why the loop ends.
func why(ctx context.Context) error {
	err := context.Cause(ctx)
	switch {
	case err == nil:
		err = recipes.ErrClosed
	case errors.Is(err, ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// follow follows the state of the connection. What happened while it was lost is found by reading all again: go-zookeeper sets its watches
// again, but may tell the server too late a zxid for what had been seen.
func (g *engine) follow(s recipes.ConnState) {
	switch s {
	case recipes.Connected, recipes.Reconnected:
		g.view.setComplete(false) // also if the state in between was missed
		session := g.client.Session()
		g.behind = g.behind || g.session != nil && g.session != session
		g.session, g.connected = session, true
		g.epoch++
		g.setOpen(g.root.exist, false)
		g.reopen(g.root)
	case recipes.Suspended, recipes.Lost:
		g.connected = false
		g.view.setComplete(false)
	}
}

// reopen has an entry, and all below it, read again.
func (g *engine) reopen(e *entry) {
	for _, r := range []*reading{e.data, e.list} {
		if r != nil {
			g.setOpen(r, true)
			g.need(r)
		}
	}
	for _, child := range e.children {
		g.reopen(child)
	}
}

// need has r read, from now on.
func (g *engine) need(r *reading) {
	switch {
	case r.dead:
	case r.state == flying:
		r.again = true
	case r.state == idle:
		r.state = queued
		if r.kind != readExist {
			g.queue = append(g.queue, r)
		}
	}
}

func (g *engine) setOpen(r *reading, open bool) {
	if r.open == open {
		return
	}
	r.open = open
	if open {
		g.open++
	} else {
		g.open--
	}
}

// drop lets go of a reading.
func (g *engine) drop(r *reading) {
	if r != nil {
		r.dead = true
		g.setOpen(r, false)
	}
}

// dispatch sends what may be sent now.
func (g *engine) dispatch(ctx context.Context) {
	if g.behind {
		if !g.syncing {
			g.syncing = true
			g.send(func() result {
				res := result{session: g.client.Session()}
				res.err = g.client.Sync(ctx, g.root.path)
				if g.client.Session() != res.session {
					res.session = nil
				}
				return res
			})
		}
		return
	}
	switch exist := g.root.exist; {
	case exist.state == queued && g.flying == 0:
		g.launch(ctx, exist)
		return
	case exist.state != idle:
		return // it is asked alone: if nothing is there, that is no older than what any other answer has shown
	}
	for g.flying < inFlight && len(g.queue) > 0 {
		r := g.queue[0]
		g.queue = g.queue[1:]
		if !r.dead {
			g.launch(ctx, r)
		}
	}
}

func (g *engine) launch(ctx context.Context, r *reading) {
	r.state, r.epoch, r.again, r.listed = flying, g.epoch, false, false
	g.flying++
	g.send(func() result { return g.ask(ctx, r) })
}

func (g *engine) send(f func() result) {
	// Ends when the Client has answered, which it does when ctx ends; Close waits for it.
	g.running.Go(func() { g.results <- f() })
}

// take takes an answer. It returns for how long nothing shall be asked for, if something went wrong.
func (g *engine) take(ctx context.Context, res result) time.Duration {
	r := res.r
	if r == nil {
		g.syncing = false
		if res.err == nil && res.session == g.session {
			g.behind = false
		}
	} else {
		g.flying--
		r.state = idle
	}
	switch {
	case r != nil && r.dead:
		return 0
	case g.client.Session() != g.session:
		g.connected = false // until the state says so: what is asked now is answered in a session that g does not know
		fallthrough
	case res.session != g.session:
		if r != nil {
			g.need(r)
		}
		return 0
	case r == nil:
		if res.err != nil {
			return retryPause
		}
		return 0
	case res.err == nil:
		if r.kind == readExist && res.stat == nil {
			g.hide(g.root)
		} else if !g.takeFound(res) {
			if r.older {
				g.anew()
				return 0
			}
			r.older, g.behind = true, true
			g.need(r)
			return 0
		}
		r.older = false
		if r.kind != readExist || res.stat == nil {
			g.arm(ctx, r, res.fires)
		}
		if r.entry == g.root {
			g.view.setRefused(nil)
		}
	case errors.Is(res.err, zk.ErrNoNode):
		if !g.takeGone(r) {
			return 0
		}
	case errors.Is(res.err, zk.ErrNoAuth), errors.Is(res.err, zk.ErrInvalidPath):
		if r.entry == g.root {
			g.need(r)
			g.view.setRefused(res.err)
			return refusedPause
		}
		g.takeRefused(r.entry)
	default:
		g.need(r)
		return retryPause
	}
	if r.epoch == g.epoch {
		g.setOpen(r, false)
	}
	if r.again {
		g.need(r)
	}
	return 0
}

// anew forgets all that is known: an answer was older than that, also when the server had caught up. So the servers have another past now:
// theirs was put back, from a backup for one, or they have lost it. zxids say nothing any more of what is older.
func (g *engine) anew() {
	g.view.setComplete(false)
	root := g.root
	g.hide(root)
	root.mzxid, root.pzxid = 0, 0
	first := root.data
	if first == nil {
		first = root.list
	} else {
		g.drop(root.list)
		root.list = nil
	}
	g.setOpen(first, true)
	g.need(first)
}

// arm has the loop told when fires does, once for each channel. It may have fired before r was read, as it may be shared; then what it
// tells is older than what was read. If it fires after this, it is newer.
func (g *engine) arm(ctx context.Context, r *reading, fires <-chan zk.Event) {
	switch {
	case r.dead:
	case fired(fires):
		r.fires = nil
		g.need(r)
	case fires != r.fires:
		r.fires = fires
		g.watch(ctx, r, fires)
	}
}

// fire has read again what a watch was on.
func (g *engine) fire(f firing) {
	r := f.r
	if r.dead || f.fires != r.fires {
		return
	}
	r.fires = nil
	if f.event.Type == zk.EventNotWatching && !r.open {
		g.behind = true // the session is over, and nothing keeps the next answer from being older than the last
	}
	deleted := f.event.Type == zk.EventNodeDeleted
	switch {
	case r.state != idle: // it will be read; and arm sees if that was at the wrong moment
	case r.kind == readExist:
		g.passOn(r)
	case deleted && r.entry == g.root && (r.kind == readData || r.entry.data == nil):
		g.need(g.root.exist)
	case deleted:
		g.doubt(r)
	default:
		g.need(r)
	}
}

// doubt is about a reading whose watch says that the znode was deleted. That is not read again: the watch on the list above fires as well, and the list
// says whether it is there. But if the event was older than the znode that was read, or came later than that list, nothing else comes.
type doubt struct {
	r     *reading
	until time.Time
}

func (g *engine) doubt(r *reading) {
	if g.doubts = append(g.doubts, doubt{r, time.Now().Add(doubtPause)}); len(g.doubts) == 1 {
		g.doubting.Reset(doubtPause)
	}
}

// settle has those read again of which nothing was heard.
func (g *engine) settle() {
	now := time.Now()
	for len(g.doubts) > 0 && !g.doubts[0].until.After(now) {
		r := g.doubts[0].r
		known := r.kind == readData || r.entry.shown != nil // else its data come first, and see to the list
		if r.state == idle && r.fires == nil && known {
			g.need(r)
		}
		g.doubts = g.doubts[1:]
	}
	if len(g.doubts) > 0 {
		g.doubting.Reset(g.doubts[0].until.Sub(now))
	}
}
