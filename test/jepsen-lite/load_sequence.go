package jepsenlite

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// loadSequence makes sequential znodes: no name is given twice, and later ones get higher numbers.
const loadSequence = "sequence"

func runSequence(ctx context.Context, w *worker) {
	for w.next(ctx) {
		// What came of it is in the history.
		_, _ = w.create(w.dir+"/n-", w.value(), zk.FlagSequence)
	}
}
