package jepsenlite

import "context"

// loadSet is a growing set of znodes with unique names: a synced list must have every acknowledged
// name and no other.
const loadSet = "set"

func runSet(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(20) == 0 {
			settleSet(w)
			continue
		}
		// The history has the result.
		_, _ = w.create(w.dir+"/"+w.value(), "", 0)
	}
}

func settleSet(w *worker) {
	// As above.
	_, _ = w.syncedChildren(w.dir)
}
