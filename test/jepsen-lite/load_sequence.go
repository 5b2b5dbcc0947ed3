package jepsenlite

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// loadSequence creates sequential znodes: no name is given twice, and later ones get higher
// numbers.
const loadSequence = "sequence"

func runSequence(ctx context.Context, w *worker) {
	for w.next(ctx) {
		// The history has the result.
		_, _ = w.create(w.dir+"/n-", w.value(), zk.FlagSequence)
	}
}
