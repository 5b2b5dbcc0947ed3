package turn

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// Under a steady load checkpoints take a fifth of the time at most, and never wait for more than
// four times the requests or bytes. Without load each is written when it is due.
func TestSchedule(t *testing.T) {
	const wanted, wantedBytes = 1000, 1 << 20
	for name, test := range map[string]struct {
		perSecond, bytes int           // of requests; of each
		took             time.Duration // a checkpoint
		most             int           // requests before a checkpoint
		share            float64       // of the time
	}{
		"little":            {100, 10, time.Second, wanted, 0.2},
		"fast and cheap":    {100_000, 10, time.Millisecond, wanted, 0.2},
		"fast and dear":     {2000, 10, 200 * time.Millisecond, 2 * wanted, 0.2},
		"too fast to rest":  {100_000, 10, time.Second, 101_000, 1},
		"large":             {10, 1 << 20, time.Hour, 36_001, 1},
		"bounded by number": {1000, 10, 2 * time.Second, checkpointStretch * wanted, 0.5},
		"bounded by bytes":  {10, wantedBytes / 8, 2 * time.Second, checkpointStretch * 8, 0.63},
	} {
		t.Run(name, func(t *testing.T) {
			var c schedule
			now, start := time.Unix(0, 0), time.Unix(0, 0)
			b := core.Batch{Requests: []core.Request{{Payload: make([]byte, test.bytes)}}}
			most, written, busy := 0, 0, time.Duration(0)
			var end time.Time // of the checkpoint that is being written
			running := false
			for range 500_000 {
				c.note(&b)
				now = now.Add(time.Second / time.Duration(test.perSecond))
				if running && !now.Before(end) {
					running = false
					c.written(now, test.took)
				}
				if !running && c.due(now, wanted, wantedBytes) {
					most = max(most, c.requests)
					c.reset()
					running, end = true, now.Add(test.took)
					busy += test.took
					written++
				}
			}
			share := busy.Seconds() / now.Sub(start).Seconds()
			t.Logf("%d checkpoints, %d requests at most, %.2f of the time", written, most, share)
			if written == 0 || most > test.most || share > test.share+0.01 {
				t.Errorf("want at most %d requests and %.2f of the time", test.most, test.share)
			}
		})
	}
}

// A checkpoint that was put off is written although nothing more is applied.
func TestSchedule_PutOff(t *testing.T) {
	c := schedule{requests: 100}
	now := time.Unix(100, 0)
	c.written(now, time.Second)
	if c.due(now, 100, 1) || c.due(now.Add(checkpointRest*time.Second-1), 100, 1<<20) {
		t.Error("due without a rest")
	}
	if !c.due(now.Add(checkpointRest*time.Second), 100, 1<<20) {
		t.Error("not due after the rest")
	}
}
