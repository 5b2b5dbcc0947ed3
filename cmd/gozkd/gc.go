package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcHeadroom is how much garbage may pile up between two collections while the heap is small.
	gcHeadroom = 12 << 20
	// A large heap gets a quarter more than it needs: every percent is paid for in memory at all times, and what it
	// saves, collections, is paid for only by writes.
	gcLeastPercent = 25
	gcMostPercent  = 100
)

// tuneGC sets GOGC by the size of the live heap: the runtime's default for a small server, less for a large one, whose memory
// the default would double. It returns when ctx ends.
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
