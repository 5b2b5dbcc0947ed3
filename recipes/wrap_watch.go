package recipes

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// watchTable remembers the armed watches of a wrapped connection. A caller that waits for the same
// znode again and again, with a context that ends each time, then arms one watch instead of many:
// go-zookeeper cannot remove a one-shot watch, and keeps each watch in a list until the watch fires.
//
// A caller that finds an armed watch reads without a watch and gets the armed watch's channel. No
// change is missed: any change after the read fires that watch. The event may also stem from a
// change before that read.
type watchTable struct {
	mu      sync.Mutex
	armed   map[armedKey]armedWatch
	sweepAt int // size at which fired watches are removed
}

// armedWatch is a watch of go-zookeeper. Callers get out, to which relay copies source.
type armedWatch struct{ source, out <-chan zk.Event }

// hasFired also looks at source, because relay copies an event to out a moment later.
func (w armedWatch) hasFired() bool { return hasFired(w.source) || hasFired(w.out) }

type armedKey struct {
	path string
	kind readKind
}

const firstSweep = 64

// remove removes the watch if out is still its channel.
func (w *watchTable) remove(key armedKey, out <-chan zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed[key].out == out {
		delete(w.armed, key)
	}
}

// lookup returns the channel of an armed watch, or nil. A watch of an existing znode's data serves
// readExists too.
func (w *watchTable) lookup(path string, kind readKind) <-chan zk.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := []readKind{kind}
	if kind == readExists {
		kinds = []readKind{readData, readExists}
	}
	for _, kind := range kinds {
		key := armedKey{path, kind}
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

func (w *watchTable) add(key armedKey, at armedWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed == nil {
		w.armed, w.sweepAt = make(map[armedKey]armedWatch), firstSweep
	}
	w.armed[key] = at
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

// registerWatch adds the watch ch to the table and returns the channel on which the watch fires.
// reconnect must be the result of nextReconnect from before the watch was requested.
//
// The watch also fires after a reconnect. go-zookeeper then re-registers its watches with a zxid
// that may be too new, so a change between the two connections would fire nothing.
func (w *wrapped) registerWatch(path string, kind readKind, ch <-chan zk.Event, reconnect <-chan struct{}) <-chan zk.Event {
	out := make(chan zk.Event, 1)
	key := armedKey{path, kind}
	w.watches.add(key, armedWatch{ch, out})
	// Ends with the watch, the connection or Close. Close waits; the caller is counted in k.calls.
	w.k.loops.Go(func() {
		defer close(out)
		select {
		case e, ok := <-ch:
			w.watches.remove(key, out)
			if ok {
				out <- e
			}
		case <-reconnect:
			w.watches.remove(key, out)
		case <-w.k.closing:
		}
	})
	return out
}

// nextReconnect returns a channel that is closed when the connection is restored.
func (w *wrapped) nextReconnect() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reconnect
}

func (w *wrapped) signalReconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.reconnect)
	w.reconnect = make(chan struct{})
}

// hasFired reports whether ch has an event or is closed. No event is consumed: the channels are
// buffered.
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
