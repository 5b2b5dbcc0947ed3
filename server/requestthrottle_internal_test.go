package server

import (
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// TestRequestThrottle_WaitsAgain: a write waits again if another takes the room that it has found.
// It is one stale request, which has waited once, from the beginning of the first wait on.
func TestRequestThrottle_WaitsAgain(t *testing.T) {
	s, err := New(Config{
		InProcess:       true,
		RequestThrottle: RequestThrottle{Limit: 1, StallTime: time.Millisecond, StaleLatency: true, KeepStale: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, ours := memnet.Pipe("client", "server")
	c := newConn(s, ours, portPlain, "client")
	c.timeoutMs = 10_000
	check := func(stale, waits, writes int64) {
		t.Helper()
		c.Lock()
		refused := c.refuseThrottled(&received{RequestHeader: proto.RequestHeader{Op: proto.OpDelete}})
		c.Unlock()
		var list facts.Values
		s.meter.AddTimes(&list)
		i := slices.IndexFunc(list, func(v facts.Value) bool { return v.Name == "request_throttle_queue_time_ms" })
		took := list[i].Is.(facts.Summary)
		if refused || s.meter.Counted(meter.StaleRequests) != stale || s.meter.Counted(meter.ThrottleWaits) != waits ||
			int64(took.Count) != writes || took.Sum < 30_000 || took.Sum > 40_000 {
			t.Errorf("refused: %v, stale: %d, waits: %d, times: %+v, want %d, %d and %d", refused,
				s.meter.Counted(meter.StaleRequests), s.meter.Counted(meter.ThrottleWaits), took, stale, waits, writes)
		}
	}
	c.waitsSince = time.Now().Add(-30 * time.Second)
	for range 3 {
		if !c.awaitWrites() {
			t.Fatal("the write was dropped")
		}
	}
	check(1, 3, 1)
	if !c.awaitWrites() || c.waitsSince.IsZero() {
		t.Fatal("the next write does not wait")
	}
	check(1, 4, 2) // it is not stale
}
