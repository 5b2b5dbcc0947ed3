package jepsenlite

import (
	"context"
	"fmt"
)

// loadWatch sets watches and changes what is watched. It ignores the client's channels: the history
// has every event.
const (
	loadWatch = "watch"
	watchKeys = 4
)

func runWatch(ctx context.Context, w *worker) {
	for w.next(ctx) {
		path := watchKey(w, w.rng.IntN(watchKeys))
		child := fmt.Sprintf("%s/%d", path, w.rng.IntN(2))
		// The history has the results.
		switch w.rng.IntN(12) {
		case 0, 1:
			_, _, _, _ = w.GetW(path)
		case 2:
			_, _, _, _ = w.ExistsW(path)
		case 3:
			_, _, _, _ = w.ChildrenW(path)
		case 4:
			_, _, _ = w.Get(path)
		case 5:
			_, _, _ = w.Children(path)
		case 6, 7:
			_, _ = w.Set(path, []byte(w.value()), -1)
		case 8:
			_, _ = w.create(path, w.value(), 0)
		case 9:
			_ = w.Delete(path, -1)
		case 10:
			_, _ = w.create(child, w.value(), 0)
		case 11:
			_ = w.Delete(child, -1)
		}
	}
}

// settleWatch reads everything that may be watched: changes that it shows must have fired.
func settleWatch(w *worker) {
	for i := range watchKeys {
		path := watchKey(w, i)
		_, _ = w.Sync(path)
		_, _, _ = w.Exists(path)
		_, _, _ = w.Children(path)
	}
}

func watchKey(w *worker, i int) string { return fmt.Sprintf("%s/%d", w.dir, i) }
