package consensus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The wall clock goes back by an hour whenever it is read. Checkpoints are written when they are
// due anyway, and only then.
func TestCheckpoint_DueThoughTheClockGoesBack(t *testing.T) {
	t.Parallel()
	const every = 10
	var back atomic.Int64
	start := time.Now()
	written := make(chan int, 100)
	n := open(t, Config{
		Dir: t.TempDir(), CheckpointRequests: every, OnCheckpoint: func(_ time.Duration, changes int) { written <- changes },
		Now: func() time.Time { return start.Add(-time.Duration(back.Add(1)) * time.Hour) },
	})
	for round := range 5 {
		for i := range every {
			n.put(t, fmt.Sprint(round, i))
		}
		select {
		case <-written:
		case <-watchdog.After(t, 20*time.Second):
			t.Fatalf("no checkpoint after %d requests", (round+1)*every)
		}
	}
	n.close(t)
	if more := len(written); more > 0 {
		t.Errorf("%d checkpoints too many", more)
	}
}
