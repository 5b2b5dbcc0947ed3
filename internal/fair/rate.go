package fair

import (
	"sync"
	"time"
)

// Rate bounds how often something happens for each key: burst times at once, and once per interval
// afterwards. Its methods may be called from any goroutine; their now is of one clock, which may
// jump.
type Rate struct {
	interval time.Duration
	burst    int
	half     int  // keys per generation
	shared   bool // see NewSharedRate

	mu sync.Mutex // guards the fields below
	// A key that was used lately is in recent. When recent is full, it becomes old, and old is
	// forgotten.
	recent, old map[string]usage
}

// usage is what has happened for a key.
type usage struct {
	// due is when the next event would be due if all events came at an even rate.
	due     time.Time
	refused int // since the last event that was allowed
}

// NewRate returns a Rate that remembers at least half of maxKeys keys, and forgets those that were
// not used for longest.
func NewRate(interval time.Duration, burst, maxKeys int) *Rate {
	return &Rate{interval: interval, burst: burst, half: max(maxKeys/2, 1), recent: make(map[string]usage)}
}

// NewSharedRate returns a Rate that never forgets a key. All keys beyond the first maxKeys share
// one bound, so that new keys are no way around it.
func NewSharedRate(interval time.Duration, burst, maxKeys int) *Rate {
	r := NewRate(interval, burst, 2*maxKeys)
	r.shared = true
	return r
}

// Take counts an event. If it is refused, wait is how long it takes until the next one is allowed,
// otherwise 0; refused is then how many events of the key were refused since the last allowed one.
func (r *Rate) Take(key string, now time.Time) (wait time.Duration, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, u := r.usage(key, now)
	if wait = r.wait(u, now); wait > 0 {
		u.refused++
		r.put(key, u)
		return wait, 0
	}
	refused = u.refused
	r.put(key, usage{due: u.due.Add(r.interval)})
	return 0, refused
}

// Give makes an event that Take has counted one that has not happened.
func (r *Rate) Give(key string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, u := r.usage(key, now)
	u.due = u.due.Add(-r.interval)
	r.put(key, u)
}

// Wait returns what Take would return, and counts nothing.
func (r *Rate) Wait(key string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, u := r.usage(key, now)
	return r.wait(u, now)
}

func (r *Rate) wait(u usage, now time.Time) time.Duration {
	return max(0, u.due.Sub(now)-time.Duration(r.burst-1)*r.interval)
}

// usage returns the usage of a key as of now, and the key under which it is stored. r.mu is held.
func (r *Rate) usage(key string, now time.Time) (string, usage) {
	u, known := r.recent[key]
	if !known {
		u, known = r.old[key]
	}
	if !known && r.shared && len(r.recent) >= r.half {
		key = ""
		u = r.recent[key]
	}
	if u.due.Before(now) {
		u.due = now
	}
	if latest := now.Add(time.Duration(r.burst) * r.interval); u.due.After(latest) { // the clock was set back
		u.due = latest
	}
	return key, u
}

// put stores the usage of a key. r.mu is held.
func (r *Rate) put(key string, u usage) {
	if _, ok := r.recent[key]; !ok && len(r.recent) >= r.half && !r.shared {
		r.old, r.recent = r.recent, make(map[string]usage)
	}
	r.recent[key] = u
}
