// Package standstill tells for how long this process stood still: it was stopped, its machine was,
// or it got no processor. Time is passed in, from a clock that does not jump.
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
	limit, memory time.Duration

	mu          sync.Mutex // guards these
	last        time.Time  // of the last call
	from, until time.Time  // the last standstill; zero: there was none
}

// New returns a Watch for which a standstill is recent until that memory has passed. From the first
// call on, Note must be called several times per limit, by a goroutine that waits for nothing else.
func New(limit, memory time.Duration) *Watch { return &Watch{limit: limit, memory: memory} }

// Run notes that the process runs, until ctx ends.
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

// note is Note after the first one. Before that it does nothing. w.mu is held.
func (w *Watch) note(now time.Time) {
	if w.last.IsZero() {
		return
	}
	if now.Sub(w.last) > w.limit {
		w.from, w.until = w.last, now
	}
	if now.After(w.last) { // of two callers, the later may come first
		w.last = now
	}
}

// Recent reports whether a standstill has ended a moment ago: others may have given up meanwhile,
// and what they sent may be obsolete.
func (w *Watch) Recent(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(now)
	return !w.until.IsZero() && now.Sub(w.until) < w.memory
}

// Elapsed returns how long ago that was, without the last standstill.
func (w *Watch) Elapsed(since, now time.Time) time.Duration {
	return now.Sub(since) - w.Lost(since, now)
}

// Lost returns how much of the time since then belongs to the last standstill.
func (w *Watch) Lost(since, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(now)
	if w.from.After(since) {
		since = w.from
	}
	return max(0, w.until.Sub(since))
}
