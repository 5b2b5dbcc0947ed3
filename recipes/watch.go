package recipes

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// watches remembers which watches are armed, so that who waits for the same znode again and again, with a context that ends, arms one and
// not one each time: a one-shot watch cannot be taken back with go-zookeeper, and it keeps each in a list until it fires.
//
// Who comes when one is armed reads without a watch and gets the channel of the armed one. It misses nothing: what happens after its read
// fires the watch. It may learn of something that happened before.
type watchTable struct {
	mu      sync.Mutex
	armed   map[watchKey]armedWatch
	sweepAt int // at this many, those that have fired are dropped
}

// watch is where one fires. For a wrapped connection, out is not source: see relay.
type armedWatch struct{ source, out <-chan zk.Event }

// fired: where out is not source, it follows a moment later.
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

// drop forgets a watch, if it is still that one.
func (w *watchTable) remove(path string, kind watchKind, out <-chan zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed[watchKey{path, kind}].out == out {
		delete(w.armed, watchKey{path, kind})
	}
}

// get returns the channel of an armed watch, or nil.
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

// armed remembers that a watch is armed, and returns the channel on which it fires; nil if there is none. again is what reconnects returned
// before it was asked for.
//
// On a wrapped connection it also fires when there is a connection again: go-zookeeper sets its watches with a zxid that may be too new then,
// so that what changed between the two connections fires nothing. Connect's connections know better.
func (k *core) registerWatch(path string, kind watchKind, ch <-chan zk.Event, again <-chan struct{}) <-chan zk.Event {
	if ch == nil {
		return nil
	}
	if !k.wrapped {
		k.watches.add(path, kind, armedWatch{ch, ch})
		return ch
	}
	out := make(chan zk.Event, 1)
	k.watches.add(path, kind, armedWatch{ch, out})
	// Ends with the watch, the connection or Close, which waits for it; the caller is counted in k.calls.
	k.loops.Go(func() { k.relay(path, kind, ch, again, out) })
	return out
}

// relay lets out get what ch gets, and closes it then, or when again is closed. By then the watch is not armed any more for who comes next.
func (k *core) relay(path string, kind watchKind, ch <-chan zk.Event, again <-chan struct{}, out chan zk.Event) {
	defer close(out)
	select {
	case e, ok := <-ch:
		k.watches.remove(path, kind, out)
		if ok {
			out <- e
		}
	case <-again:
		k.watches.remove(path, kind, out)
	case <-k.closing:
	}
}

// reconnects returns a channel that is closed when a wrapped connection has a server again.
func (k *core) nextReconnect() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reconnectSignal
}

// reconnected closes what reconnects has returned.
func (k *core) reconnected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signalReconnect()
}

// fireAgain needs mu.
func (k *core) signalReconnect() {
	close(k.reconnectSignal)
	k.reconnectSignal = make(chan struct{})
}

// fired looks whether there is an event, without taking it where it can: go-zookeeper sends one and closes the channel.
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
