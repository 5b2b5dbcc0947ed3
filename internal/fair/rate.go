package fair

import (
	"sync"
	"time"
)

// Rate bounds how often something happens for each key: burst times at once, and once per interval
// afterwards. It is safe for concurrent use; every now is of one clock, which may jump.
type Rate struct {
	limit  Limit
	half   int  // keys per generation
	shared bool // see NewSharedRate

	mu sync.Mutex // guards the fields below
	// A key used lately is in recent. When that is full, it becomes old, and old is forgotten.
	recent, old map[string]usage
}

type usage struct {
	Bucket
	refused int // since the last event that was allowed
}

// NewRate returns a Rate that remembers at least half of maxKeys keys, and forgets those that were
// not used for longest.
func NewRate(interval time.Duration, burst, maxKeys int) *Rate {
	limit := Limit{Size: float64(burst), PerSecond: float64(time.Second) / float64(interval)}
	return &Rate{limit: limit, half: max(maxKeys/2, 1), recent: make(map[string]usage)}
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
	key, u := r.usage(key)
	if wait = u.Wait(r.limit, 1, now); wait > 0 {
		u.refused++
		r.put(key, u)
		return wait, 0
	}
	refused, u.refused = u.refused, 0
	u.Take(1)
	r.put(key, u)
	return 0, refused
}

// Give makes an event that Take has counted one that has not happened.
func (r *Rate) Give(key string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, u := r.usage(key)
	u.Missing(r.limit, now)
	u.Take(-1)
	r.put(key, u)
}

// Wait returns the result that Take would have, and counts nothing.
func (r *Rate) Wait(key string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, u := r.usage(key)
	return u.Wait(r.limit, 1, now)
}

// usage returns the usage of a key, and the key under which it is stored. r.mu is held.
func (r *Rate) usage(key string) (string, usage) {
	u, known := r.recent[key]
	if !known {
		u, known = r.old[key]
	}
	if !known && r.shared && len(r.recent) >= r.half {
		key = ""
		u = r.recent[key]
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
