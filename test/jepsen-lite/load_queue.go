package jepsenlite

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
)

// loadQueue puts and takes items: each is taken once, or still there in the end.
const loadQueue = "queue"

func runQueue(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(2) == 0 {
			// The history has the result.
			_, _ = w.create(w.dir+"/q-", w.value(), zk.FlagSequence)
			continue
		}
		names, _, err := w.Children(w.dir)
		if err != nil || len(names) == 0 {
			continue
		}
		first := w.dir + "/" + slices.Min(names)
		if _, stat, err := w.Get(first); err == nil {
			// As above.
			_ = w.Delete(first, stat.Version)
		}
	}
}

func settleQueue(w *worker) {
	// As above.
	_, _ = w.syncedChildren(w.dir)
}
