package cache

import (
	"context"
	"iter"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// listener follows the events of a view. A listener keeps the reported state and the paths that
// have changed since; the next event is the difference between the reported and the present state.
// So a slow reader costs no more memory than two copies of the map, and skips intermediate states.
// Guarded by the view's mutex.
type listener struct {
	reported  map[string]*Znode
	queue     []item // in the order of the changes; each path once
	queued    map[string]struct{}
	compactAt int           // length of queue at which paths without a difference are dropped
	wake      chan struct{} // capacity 1: there may be something to report
}

// item is a changed path, or the event Complete or Stale.
type item struct {
	path  string
	event EventType
}

const firstCompact = 256

func (v *view) note(l *listener, path string) {
	if _, there := l.queued[path]; there {
		return
	}
	if len(l.queue) >= l.compactAt {
		v.compactQueue(l)
	}
	l.queued[path] = struct{}{}
	l.add(item{path: path})
}

// noteComplete records Complete or Stale. Of unreported events, only a Stale before Complete stays.
func (l *listener) noteComplete(complete bool) {
	event := Stale
	if complete {
		event = Complete
	}
	stale := false
	kept := l.queue[:0]
	for _, i := range l.queue {
		if i.event == Complete || i.event == Stale && stale {
			continue
		}
		stale = stale || i.event == Stale
		kept = append(kept, i)
	}
	dropped := len(kept) < len(l.queue)
	l.queue = kept
	if event == Stale && (stale || dropped) {
		return // Complete was not reported, so Stale need not be
	}
	l.add(item{event: event})
}

func (l *listener) add(i item) {
	l.queue = append(l.queue, i)
	wakeup.Send(l.wake)
}

// next returns the next events, which are of one path, or false if there are none. v.mu is held.
func (v *view) next(l *listener) ([]Event, bool) {
	for len(l.queue) > 0 {
		i := l.queue[0]
		l.queue = l.queue[1:]
		if i.event != 0 {
			return []Event{{Type: i.event}}, true
		}
		delete(l.queued, i.path)
		old, now := l.reported[i.path], v.at(i.path)
		if now == nil {
			delete(l.reported, i.path)
		} else {
			l.reported[i.path] = now
		}
		if e := diff(old, now); len(e) > 0 {
			return e, true
		}
	}
	l.queue = nil
	return nil, false
}

// compactQueue drops paths whose changes have cancelled each other out.
func (v *view) compactQueue(l *listener) {
	kept := make([]item, 0, len(l.queue))
	for _, i := range l.queue {
		if i.event == 0 && same(l.reported[i.path], v.at(i.path)) {
			delete(l.queued, i.path)
			continue
		}
		kept = append(kept, i)
	}
	l.queue, l.compactAt = kept, max(firstCompact, 2*len(kept))
}

func diff(old, now *Znode) []Event {
	switch {
	case same(old, now):
		return nil
	case old == nil:
		return []Event{{Type: Added, New: now}}
	case now == nil:
		return []Event{{Type: Removed, Old: old}}
	case old.Stat.Czxid != now.Stat.Czxid:
		return []Event{{Type: Removed, Old: old}, {Type: Added, New: now}}
	}
	return []Event{{Type: Changed, Old: old, New: now}}
}

// listen returns a listener that has reported nothing.
func (v *view) listen() *listener {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &listener{reported: make(map[string]*Znode), queued: make(map[string]struct{}), wake: make(chan struct{}, 1), compactAt: firstCompact}
	for _, z := range v.all() {
		v.note(l, z.Path)
	}
	if v.complete {
		l.noteComplete(true)
	}
	v.listeners[l] = struct{}{}
	return l
}

func (v *view) forget(l *listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.listeners, l)
}

// events is engine.Events, and also ends when ended is closed.
func (v *view) events(ctx context.Context, ended <-chan struct{}) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		l := v.listen()
		defer v.forget(l)
		for {
			v.mu.Lock()
			events, more := v.next(l)
			v.mu.Unlock()
			for _, e := range events {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			if more {
				continue
			}
			select {
			case <-l.wake:
			case <-ctx.Done():
				return
			case <-ended:
				return
			}
		}
	}
}
