package cache

import (
	"context"
	"iter"
)

// listener is one who follows the events. It keeps what it has told and which paths have changed since; what it tells is the difference
// between that and what is shown when it is asked for the next event. So a slow one needs no more memory than two copies of the map, and
// skips what did not last. The view's mutex guards it.
type listener struct {
	told    map[string]*Znode
	queue   []item // in the order of the changes; each path once
	queued  map[string]struct{}
	compact int           // at this length of queue, what has become nothing is dropped
	more    chan struct{} // holds one: there may be something to tell
}

// item is a path that has changed, or Complete or Stale.
type item struct {
	path string
	mark EventType
}

const firstCompact = 256

// note notes that what is shown at path has changed.
func (v *view) note(l *listener, path string) {
	if _, there := l.queued[path]; there {
		return
	}
	if len(l.queue) >= l.compact {
		v.compactQueue(l)
	}
	l.queued[path] = struct{}{}
	l.add(item{path: path})
}

// noteComplete notes a turn. What was not told of an earlier one is left out, but for a Stale that is followed by Complete.
func (l *listener) noteComplete(complete bool) {
	mark := Stale
	if complete {
		mark = Complete
	}
	stale := false
	kept := l.queue[:0]
	for _, i := range l.queue {
		if i.mark == Complete || i.mark == Stale && stale {
			continue
		}
		stale = stale || i.mark == Stale
		kept = append(kept, i)
	}
	dropped := len(kept) < len(l.queue)
	l.queue = kept
	if mark == Stale && (stale || dropped) {
		return // it was not told that it was complete meanwhile
	}
	l.add(item{mark: mark})
}

func (l *listener) add(i item) {
	l.queue = append(l.queue, i)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// next returns the next events, those of one path, and false if there are none. It needs the view's mutex.
func (v *view) next(l *listener) ([]Event, bool) {
	for len(l.queue) > 0 {
		i := l.queue[0]
		l.queue = l.queue[1:]
		if i.mark != 0 {
			return []Event{{Type: i.mark}}, true
		}
		delete(l.queued, i.path)
		old, now := l.told[i.path], v.at(i.path)
		if now == nil {
			delete(l.told, i.path)
		} else {
			l.told[i.path] = now
		}
		if e := diff(old, now); len(e) > 0 {
			return e, true
		}
	}
	l.queue = nil
	return nil, false
}

// compactQueue drops what came and went before it was told.
func (v *view) compactQueue(l *listener) {
	kept := make([]item, 0, len(l.queue))
	for _, i := range l.queue {
		if i.mark == 0 && same(l.told[i.path], v.at(i.path)) {
			delete(l.queued, i.path)
			continue
		}
		kept = append(kept, i)
	}
	l.queue, l.compact = kept, max(firstCompact, 2*len(kept))
}

// diff returns the events that lead from old to now.
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

// listen returns a listener to which everything that is shown is new.
func (v *view) listen() *listener {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &listener{told: make(map[string]*Znode), queued: make(map[string]struct{}), more: make(chan struct{}, 1), compact: firstCompact}
	for _, z := range v.allLocked() {
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

// events is Cache.Events, until ended is closed.
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
			case <-l.more:
			case <-ctx.Done():
				return
			case <-ended:
				return
			}
		}
	}
}
