package recipes

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// watchTable remembers the armed watches. A caller that waits for the same znode again and again,
// with a context that ends each time, then arms one watch instead of many: go-zookeeper cannot
// remove a one-shot watch, and keeps each watch in a list until the watch fires.
//
// A caller that finds an armed watch reads without a watch and gets the armed watch's channel. No
// change is missed: any change after the read fires that watch. The event may also stem from a
// change before that read.
type watchTable struct {
	mu      sync.Mutex
	armed   map[watchKey]armedWatch
	sweepAt int // size at which fired watches are removed
}

// armedWatch is the channel of a watch. On a wrapped connection, callers get out, to which relay
// copies source.
type armedWatch struct{ source, out <-chan zk.Event }

// hasFired also looks at source, because relay copies an event to out a moment later.
func (w armedWatch) hasFired() bool {
	return hasFired(w.source) || w.out != w.source && hasFired(w.out)
}

type watchKey struct {
	path string
	kind watchKind
}

type watchKind int8

const (
	watchData watchKind = iota
	watchExist
	watchChildren
)

const firstSweep = 64

// remove removes the watch if out is still its channel.
func (w *watchTable) remove(path string, kind watchKind, out <-chan zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed[watchKey{path, kind}].out == out {
		delete(w.armed, watchKey{path, kind})
	}
}

// lookup returns the channel of an armed watch of one of kinds, or nil.
func (w *watchTable) lookup(path string, kinds ...watchKind) <-chan zk.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		key := watchKey{path, kind}
		at, there := w.armed[key]
		switch {
		case !there:
		case at.hasFired():
			delete(w.armed, key)
		default:
			return at.out
		}
	}
	return nil
}

func (w *watchTable) add(path string, kind watchKind, at armedWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed == nil {
		w.armed, w.sweepAt = make(map[watchKey]armedWatch), firstSweep
	}
	w.armed[watchKey{path, kind}] = at
	if len(w.armed) < w.sweepAt {
		return
	}
	for key, at := range w.armed {
		if at.hasFired() {
			delete(w.armed, key)
		}
	}
	w.sweepAt = max(firstSweep, 2*len(w.armed))
}

// registerWatch adds the watch ch to the table and returns the channel on which the watch fires;
// nil if ch is nil. reconnect must be the result of nextReconnect from before the watch was
// requested.
//
// On a wrapped connection, the watch also fires after a reconnect. go-zookeeper then re-registers
// its watches with a zxid that may be too new, so a change between the two connections would fire
// nothing. Connections of Connect correct the zxid.
func (k *core) registerWatch(path string, kind watchKind, ch <-chan zk.Event, reconnect <-chan struct{}) <-chan zk.Event {
	if ch == nil {
		return nil
	}
	if !k.wrapped {
		k.watches.add(path, kind, armedWatch{ch, ch})
		return ch
	}
	out := make(chan zk.Event, 1)
	k.watches.add(path, kind, armedWatch{ch, out})
	// Ends with the watch, the connection or Close. Close waits; the caller is counted in k.calls.
	k.loops.Go(func() { k.relay(path, kind, ch, reconnect, out) })
	return out
}

// relay copies the event of ch to out and closes out, or only closes out when reconnect is closed.
// Before that, relay removes the watch from the table.
func (k *core) relay(path string, kind watchKind, ch <-chan zk.Event, reconnect <-chan struct{}, out chan zk.Event) {
	defer close(out)
	select {
	case e, ok := <-ch:
		k.watches.remove(path, kind, out)
		if ok {
			out <- e
		}
	case <-reconnect:
		k.watches.remove(path, kind, out)
	case <-k.closing:
	}
}

// nextReconnect returns a channel that is closed when the connection is restored.
func (k *core) nextReconnect() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reconnectSignal
}

// signalReconnect must be called with mu held.
func (k *core) signalReconnect() {
	close(k.reconnectSignal)
	k.reconnectSignal = make(chan struct{})
}

// hasFired reports whether ch has an event or is closed. No event is consumed: go-zookeeper's
// channels are buffered.
func hasFired(ch <-chan zk.Event) bool {
	if len(ch) > 0 {
		return true
	}
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
