package recipes

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// watchKey identifies the watches that a server keeps as one.
type watchKey struct {
	path     string
	children bool
}

// watch is a watch that is armed or asked for.
type watch struct {
	ch    chan zk.Event // capacity 1; closed after an event
	asked int           // requests for the watch without an answer
	armed bool
}

// expectWatch is called before a watch is asked for: its event may come before the answer.
func (n *native) expectWatch(conn *client.Client, key watchKey) (*watch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.uses(conn) { // nobody would fire the watch
		return nil, zk.ErrNoServer
	}
	w := n.watches[key]
	if w == nil {
		w = &watch{ch: make(chan zk.Event, 1)}
		n.watches[key] = w
	}
	w.asked++
	return w, nil
}

// uses reports whether conn gets the requests at present. n.mu is held.
func (n *native) uses(conn *client.Client) bool { return conn == n.conn || conn == n.reader }

// watchAnswered returns the watch's channel if the watch is armed.
func (n *native) watchAnswered(key watchKey, w *watch, armed bool) <-chan zk.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.asked--
	w.armed = w.armed || armed
	if !w.armed && w.asked == 0 && n.watches[key] == w {
		delete(n.watches, key)
	}
	if !armed {
		return nil
	}
	return w.ch
}

// fireEvent fires the watches that an event concerns. n.mu is held.
func (n *native) fireEvent(e client.Event) {
	for _, children := range []bool{false, true} {
		if children && e.Type != proto.EventDeleted && e.Type != proto.EventChildrenChanged || !children && e.Type == proto.EventChildrenChanged {
			continue
		}
		key := watchKey{e.Path, children}
		if w := n.watches[key]; w != nil {
			n.fire(key, w, zk.Event{Type: zk.EventType(e.Type), State: zk.StateHasSession, Path: e.Path})
		}
	}
	for t := range n.trees {
		if e.Type >= proto.EventCreated && e.Type <= proto.EventDataChanged && t.covers(e.Path) {
			t.f(zk.Event{Type: zk.EventType(e.Type), State: zk.StateHasSession, Path: e.Path})
		}
	}
}

// fire must be called with n.mu held.
func (n *native) fire(key watchKey, w *watch, e zk.Event) {
	w.ch <- e // the only one
	close(w.ch)
	delete(n.watches, key)
}

// treeWatch is a call of watchTree. Calls with the same root share a watch of the server.
type treeWatch struct {
	root string
	f    func(zk.Event)
	stop func() bool // ends the wait for the end of ctx; nil until the server has set the watch
}

func (t *treeWatch) covers(path string) bool {
	rest, below := strings.CutPrefix(path, t.root)
	return below && (rest == "" || rest[0] == '/' || t.root == "/")
}

// watchTree calls f, with n.mu held, for each event at root and below it, until ctx or the session
// ends.
func (n *native) watchTree(ctx context.Context, root string, f func(zk.Event)) error {
	t := &treeWatch{root: root, f: f}
	_, err := send(ctx, n, func(conn *client.Client) (struct{}, error) {
		var none struct{}
		if !n.takeTreeTurn(ctx) {
			return none, newCtxError(ctx, false)
		}
		defer n.releaseTreeTurn()
		n.mu.Lock()
		current := n.uses(conn)
		if current {
			n.trees[t] = struct{}{}
		}
		n.mu.Unlock()
		if !current {
			return none, zk.ErrNoServer
		}
		err := conn.AddWatch(ctx, root, proto.AddWatchPersistentRecursive)
		if err != nil {
			n.unwatchTree(conn, t)
			return none, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if _, current = n.trees[t]; current {
			t.stop = context.AfterFunc(ctx, func() { n.unwatchTree(conn, t) })
		}
		return none, nil
	})
	return err
}

// unwatchTree ends a call of watchTree. The server's watch is removed in the background, unless
// another call needs it.
func (n *native) unwatchTree(conn *client.Client, t *treeWatch) {
	n.mu.Lock()
	delete(n.trees, t)
	n.mu.Unlock()
	if !n.k.calls.tryAdd() {
		return // Close ends the session
	}
	defer n.k.calls.done()
	n.k.background(func(ctx context.Context) {
		if !n.takeTreeTurn(ctx) {
			return
		}
		defer n.releaseTreeTurn()
		n.mu.Lock()
		needed := !n.uses(conn)
		for other := range n.trees {
			needed = needed || other.root == t.root
		}
		n.mu.Unlock()
		if !needed {
			// It fails if the session has ended, or the server never set the watch. ZooKeeper 3.6 to 3.8
			// cannot remove it; the events of the rest of the session are then ignored.
			_ = conn.RemoveWatches(ctx, t.root, proto.WatcherPersistentRecursive, true)
		}
	})
}

// takeTreeTurn waits until no other goroutine adds or removes a recursive watch.
func (n *native) takeTreeTurn(ctx context.Context) bool {
	select {
	case n.treeTurn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *native) releaseTreeTurn() { <-n.treeTurn }
