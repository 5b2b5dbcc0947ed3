package cache

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// entry is a znode that the cache follows: the first one, or one that a listing has shown. It is dead when a later listing has not.
type entry struct {
	path     string
	depth    int // below the first
	children map[string]*entry
	shown    *Znode // nil if it is not there, or not known yet, or its data are of no interest
	mzxid    int64  // the newest that was read
	pzxid    int64  // of the last listing
	czxid    int64  // of the znode that was listed; another than that of shown if one of the two answers is older

	data  *reading
	list  *reading // nil if its children are of no interest
	exist *reading // of the first znode only: to learn when it is there
}

// newest returns the zxid of the newest creation that is shown of a znode and of what is below it, 0 if there is none.
func (e *entry) newest() int64 {
	var zxid int64
	if e.shown != nil {
		zxid = e.shown.Stat.Czxid
	}
	for _, child := range e.children {
		zxid = max(zxid, child.newest())
	}
	return zxid
}

// reading is one thing that is read of a znode, again and again. At most one request for it is under way, so that its answers come in order.
type reading struct {
	kind  kind
	entry *entry
	state state
	again bool // what is under way may be too old
	dead  bool // nobody needs it any more

	open   bool // it was not answered since the connection was made, and the cache is not complete before
	epoch  int  // in which the request under way was sent
	listed bool // a listing has shown the znode while the request was under way
	older  bool // the last answer was older than what the cache knows

	fires <-chan zk.Event // the watch, until it has fired
}

type kind int8

const (
	readData kind = iota
	readList
	readExist
)

type state int8

const (
	idle state = iota
	queued
	flying
)

// result is the answer to a request, for a reading, or for a sync if there is none.
type result struct {
	r       *reading
	data    []byte
	names   []string
	stat    *zk.Stat
	fires   <-chan zk.Event
	err     error
	session *recipes.Session // in which it was answered; nil if it is not sure in which
}

// firing tells that a watch has fired.
type firing struct {
	r     *reading
	fires <-chan zk.Event
	event zk.Event // zero if somebody else has got it
}

// ask reads what r reads.
func (g *engine) ask(ctx context.Context, r *reading) result {
	res := result{r: r, session: g.client.Session()}
	switch path := r.entry.path; r.kind {
	case readData:
		res.data, res.stat, res.fires, res.err = g.client.GetW(ctx, path)
	case readList:
		res.names, res.stat, res.fires, res.err = g.client.ChildrenW(ctx, path)
	case readExist:
		res.stat, res.fires, res.err = g.client.ExistsW(ctx, path)
	}
	if g.client.Session() != res.session {
		res.session = nil
	}
	return res
}

// watch tells the loop when fires does.
func (g *engine) watch(ctx context.Context, r *reading, fires <-chan zk.Event) {
	// Ends when the watch fires, which the znode's deletion does at the latest, or with ctx; Close waits for it.
	g.running.Go(func() {
		var (
			e    zk.Event
			more bool
		)
		select {
		case e, more = <-fires:
		case <-ctx.Done():
			return
		}
		if more { // it is closed next: before that, the Client takes it for armed
			select {
			case <-fires:
			case <-ctx.Done():
				return
			}
		}
		select {
		case g.firings <- firing{r, fires, e}:
		case <-ctx.Done():
		}
	})
}

// fired looks whether a watch has fired, or is none.
func fired(fires <-chan zk.Event) bool {
	if fires == nil || len(fires) > 0 {
		return true
	}
	select {
	case <-fires: // it is closed, after somebody took the event
		return true
	default:
		return false
	}
}
