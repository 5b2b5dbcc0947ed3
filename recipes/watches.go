package recipes

import "github.com/gozkd/gozkd/client"

// watchTable holds the watches of a transport, whose mutex guards the table. Reads of the same
// znode share a channel, since a server keeps one watch per znode and kind.
type watchTable map[watchKey]*watch

// watchKey identifies the watches that a server keeps as one.
type watchKey struct {
	path     string
	children bool
}

// watch is a watch that is armed or asked for.
type watch struct {
	key   watchKey
	ch    chan client.Event // capacity 1; closed after an event
	asked int               // requests for the watch without an answer
	armed bool
	fired bool
	// due reports whether the watch is about to fire. Set with armed; nil: never.
	due func() bool
}

// ask is called before a watch is asked for: its event may come before the answer. A watch that is
// about to fire is not shared: its event may be of a change that the answer shows.
func (t watchTable) ask(key watchKey) *watch {
	w := t[key]
	if w == nil || w.due != nil && w.due() {
		w = &watch{key: key, ch: make(chan client.Event, 1)}
		t[key] = w
	}
	w.asked++
	return w
}

// answered is called with the answer to each ask, and returns the watch's channel if armed.
func (t watchTable) answered(w *watch, armed bool) <-chan client.Event {
	w.asked--
	w.armed = w.armed || armed
	if !w.armed && w.asked == 0 {
		t.remove(w)
	}
	if !armed {
		return nil
	}
	return w.ch
}

// fire fires a watch once. Without an event the channel is only closed.
func (t watchTable) fire(w *watch, e client.Event) {
	if w.fired {
		return
	}
	w.fired = true
	if e != (client.Event{}) {
		w.ch <- e // the only one
	}
	close(w.ch)
	t.remove(w)
}

func (t watchTable) remove(w *watch) {
	if t[w.key] == w {
		delete(t, w.key)
	}
}
