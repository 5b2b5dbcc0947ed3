package jepsenlite

import (
	"context"
	"fmt"
	"time"
)

// loadRegister creates, sets by version, deletes and reads znodes from several clients, checked for
// linearizability. The keys change after some operations, because the check's cost grows with a
// key's history.
const (
	loadRegister   = "register"
	registerKeys   = 3
	registerPeriod = 150 // in paces
)

func runRegister(ctx context.Context, w *worker) {
	type key struct {
		period time.Duration
		n      int
	}
	versions := map[key]int32{} // as last read
	for w.next(ctx) {
		k := key{w.rec.Now() / (registerPeriod * w.pace), w.rng.IntN(registerKeys)}
		path := fmt.Sprintf("%s/%d-%d", w.dir, k.period, k.n)
		switch p := w.rng.IntN(100); {
		case p < 20:
			if _, err := w.create(path, w.value(), 0); err == nil {
				versions[k] = 0
			}
		case p < 50:
			if stat, err := w.Set(path, []byte(w.value()), versions[k]); err == nil {
				versions[k] = stat.Version
			}
		case p < 60:
			if stat, err := w.Set(path, []byte(w.value()), -1); err == nil {
				versions[k] = stat.Version
			}
		case p < 65:
			// The history has the result.
			_ = w.Delete(path, versions[k])
		default:
			if _, stat, err := w.syncedGet(path); err == nil {
				versions[k] = stat.Version
			}
		}
	}
}
