package recipes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// expectWatch is called before a watch is asked for.
func (n *native) expectWatch(conn *client.Client, key watchKey) (*watch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.uses(conn) { // nobody would fire the watch
		return nil, ErrNoServer
	}
	return n.watches.ask(key), nil
}

// uses reports whether conn gets the requests at present. n.mu is held.
func (n *native) uses(conn *client.Client) bool { return conn == n.conn || conn == n.reader }

// fireEvent fires the watches that an event concerns. n.mu is held.
func (n *native) fireEvent(e client.Event) {
	for _, children := range []bool{false, true} {
		if children && e.Type != proto.EventDeleted && e.Type != proto.EventChildrenChanged || !children && e.Type == proto.EventChildrenChanged {
			continue
		}
		if w := n.watches[watchKey{e.Path, children}]; w != nil {
			n.watches.fire(w, e)
		}
	}
	for t := range n.trees {
		if t.covers(e) {
			t.f(e)
		}
	}
}

// treeWatch is a call of watchTree. Calls with the same treeKey share a watch of the server.
type treeWatch struct {
	treeKey
	f func(client.Event)
}

type treeKey struct {
	root string
	mode proto.AddWatchMode
}

func (t treeKey) covers(e client.Event) bool {
	if t.mode == proto.AddWatchPersistent {
		return e.Path == t.root && e.Type >= proto.EventCreated && e.Type <= proto.EventChildrenChanged
	}
	rest, below := strings.CutPrefix(e.Path, t.root)
	return below && (rest == "" || rest[0] == '/' || t.root == "/") && e.Type >= proto.EventCreated && e.Type <= proto.EventDataChanged
}

// watchTree calls f, with n.mu held, for each event that the watch covers, until ctx ends.
func (n *native) watchTree(ctx context.Context, root string, recursive bool, f func(client.Event)) error {
	t := &treeWatch{treeKey{root, proto.AddWatchPersistent}, f}
	if recursive {
		t.mode = proto.AddWatchPersistentRecursive
	}
	_, err := send(ctx, n, func(conn *client.Client) (none struct{}, err error) {
		n.treeTurn <- struct{}{}
		defer func() { <-n.treeTurn }()
		n.mu.Lock()
		current := n.uses(conn)
		if current {
			n.trees[t] = struct{}{}
		}
		n.mu.Unlock()
		if !current {
			return none, ErrNoServer
		}
		return none, conn.AddWatch(ctx, root, t.mode)
	})
	if err != nil {
		n.unwatchTree(t)
		return err
	}
	context.AfterFunc(ctx, func() { n.unwatchTree(t) })
	return nil
}

// watchTreesAgain sets the watches of earlier sessions on a new Client, before anybody uses it. The
// caller has the tree turn. The error is the connection's; a watch that the server refuses ends.
func (n *native) watchTreesAgain(conn *client.Client) error {
	n.mu.Lock()
	trees := slices.Collect(maps.Keys(n.trees))
	n.mu.Unlock()
	for _, t := range trees {
		err := nativeError(n.k.ctx, conn.AddWatch(n.k.ctx, t.root, t.mode))
		if classify(err) != answered {
			return fmt.Errorf("watch %s again: %w", t.root, err)
		}
		n.mu.Lock()
		if _, watched := n.trees[t]; watched && err != nil {
			delete(n.trees, t)
			n.k.cfg.log.Warn("a watch has ended: the server refused to set it again", "path", t.root, "error", err)
			t.f(client.Event{Type: EventNotWatching, Path: t.root})
		}
		n.mu.Unlock()
	}
	return nil
}

// unwatchTree ends a call of watchTree. The server's watch is removed in the background, unless
// another call needs it.
func (n *native) unwatchTree(t *treeWatch) {
	n.mu.Lock()
	delete(n.trees, t)
	n.mu.Unlock()
	if !n.k.calls.tryAdd() {
		return // Close ends the session
	}
	defer n.k.calls.done()
	n.k.background(func(ctx context.Context) {
		n.treeTurn <- struct{}{}
		defer func() { <-n.treeTurn }()
		n.mu.Lock()
		conn := cmp.Or(n.conn, n.reader)
		for other := range n.trees {
			if other.treeKey == t.treeKey {
				conn = nil
			}
		}
		n.mu.Unlock()
		if conn != nil {
			kind := proto.WatcherPersistent + proto.WatcherType(t.mode) // or WatcherPersistentRecursive
			// It fails if the server never set the watch. ZooKeeper 3.6 to 3.8 cannot remove it;
			// the events of the rest of the session are then ignored.
			_ = conn.RemoveWatches(ctx, t.root, kind, true)
		}
	})
}
