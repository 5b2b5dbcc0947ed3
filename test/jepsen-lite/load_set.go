package jepsenlite

import "context"

// loadSet is a growing set of znodes with unique names: none that was acknowledged may be missing from a later synced
// list, and none may be there that nobody added.
const loadSet = "set"

func runSet(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(20) == 0 {
			settleSet(w)
			continue
		}
		// What came of it is in the history.
		_, _ = w.create(w.dir+"/"+w.value(), "", 0)
	}
}

func settleSet(w *worker) {
	// As above.
	_, _ = w.syncedChildren(w.dir)
}
