package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcHeadroom is the garbage that may accumulate between two collections while the heap is
	// small.
	gcHeadroom = 12 << 20
	// A large heap may grow by a quarter: memory costs all the time, but collections only when
	// clients write.
	gcLeastPercent = 25
	gcMostPercent  = 100
)

// tuneGC sets GOGC by the size of the live heap until ctx ends: the runtime's default for a small
// heap, less for a large heap, which the default would double.
func tuneGC(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64()); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func gcPercent(live uint64) int {
	if live == 0 { // before the first collection
		return gcMostPercent
	}
	return int(min(max(gcHeadroom*100/live, gcLeastPercent), gcMostPercent))
}
