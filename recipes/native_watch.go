package recipes

import (
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
	if n.conn != conn { // nobody would fire the watch
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
}

// fire must be called with n.mu held.
func (n *native) fire(key watchKey, w *watch, e zk.Event) {
	w.ch <- e // the only one
	close(w.ch)
	delete(n.watches, key)
}
