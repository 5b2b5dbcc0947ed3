package recipes

import "github.com/gozkd/gozkd/client"

// armedWatch is a watch of a Conn. Callers get out, to which a goroutine copies source.
//
// A caller that waits for the same znode again and again, with a context that ends each time, arms
// one watch instead of many: go-zookeeper cannot remove a one-shot watch, and keeps each watch in a
// list until the watch fires. A caller that finds an armed watch reads without a watch and gets the
// armed watch's channel. No change is missed: any change after the read fires that watch.
type armedWatch[E any] struct {
	source <-chan E
	out    <-chan client.Event
}

// lookup returns the channel of an armed watch, or nil. The watch has not fired yet: an event from
// before the caller's read would report a change that the caller has seen.
func (w *wrapped[E]) lookup(key watchKey) <-chan client.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.watches[key]
	if hasFired(at.source) { // its goroutine is about to remove it
		return nil
	}
	return at.out
}

// registerWatch adds the watch ch to the table and returns the channel on which the watch fires.
// reconnect must be the result of nextReconnect from before the watch was requested.
//
// The watch also fires after a reconnect. go-zookeeper then re-registers its watches with a zxid
// that may be too new, so a change between the two connections would fire nothing.
func (w *wrapped[E]) registerWatch(key watchKey, ch <-chan E, reconnect <-chan struct{}) <-chan client.Event {
	out := make(chan client.Event, 1)
	w.mu.Lock()
	w.watches[key] = armedWatch[E]{ch, out}
	w.mu.Unlock()
	// Ends with the watch, the connection or Close. Close waits; the caller is counted in k.calls.
	w.k.loops.Go(func() {
		defer close(out)
		select {
		case e, ok := <-ch:
			w.removeWatch(key, out)
			if ok {
				out <- w.conn.Event(e)
			}
		case <-reconnect:
			w.removeWatch(key, out)
		case <-w.k.closing:
		}
	})
	return out
}

// removeWatch removes the watch if out is still its channel.
func (w *wrapped[E]) removeWatch(key watchKey, out <-chan client.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[key].out == out {
		delete(w.watches, key)
	}
}

// nextReconnect returns a channel that is closed when the connection is restored.
func (w *wrapped[E]) nextReconnect() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reconnect
}

func (w *wrapped[E]) signalReconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.reconnect)
	w.reconnect = make(chan struct{})
}

// hasFired reports whether ch has an event or is closed.
func hasFired[E any](ch <-chan E) bool {
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
