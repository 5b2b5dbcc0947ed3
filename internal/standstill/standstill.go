// Package standstill tells for how long this process stood still, because the process or its
// machine was stopped, or because the process got no processor. Callers pass in the time, from a
// clock that does not jump; only [Watch.Run] reads the clock itself.
package standstill

import (
	"context"
	"sync"
	"time"
)

// Watch notices that the process stood still. It is safe for concurrent use.
//
// The process is known to run at each call of Note and, after the first one, of Recent and Lost. If
// two of these are further apart than the limit, the process stood still between them.
type Watch struct {
	limit time.Duration

	mu          sync.Mutex // guards these
	last        time.Time  // of the latest call
	from, until time.Time  // the last standstill; zero: there was none
}

// New returns a Watch. From the first call on, Note must be called several times per limit, by a
// goroutine that waits for nothing else, as Run does.
func New(limit time.Duration) *Watch { return &Watch{limit: limit} }

// Run calls Note twice per limit, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(max(w.limit/2, time.Millisecond))
	defer tick.Stop()
	for {
		w.Note(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Note records that the process runs.
func (w *Watch) Note(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.IsZero() {
		w.last = now
	}
	w.note(now)
}

// note records that the process runs, once Note has been called. w.mu is held.
func (w *Watch) note(now time.Time) {
	if w.last.IsZero() {
		return
	}
	if now.Sub(w.last) > w.limit {
		w.from, w.until = w.last, now
	}
	if now.After(w.last) { // a caller that read the clock earlier may come later
		w.last = now
	}
}

// Recent reports whether the last standstill ended less than within before now. Then others may
// have given up during the standstill, and their requests may be obsolete.
func (w *Watch) Recent(now time.Time, within time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(now)
	return !w.until.IsZero() && now.Sub(w.until) < within
}

// Elapsed returns the time from since to now, without the part that Lost returns.
func (w *Watch) Elapsed(since, now time.Time) time.Duration {
	return now.Sub(since) - w.Lost(since, now)
}

// Lost returns how much of the time from since to now belongs to the last standstill.
func (w *Watch) Lost(since, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(now)
	if w.from.After(since) {
		since = w.from
	}
	return max(0, w.until.Sub(since))
}
