package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// The average is never below the least latency that is shown, nor above the largest.
func TestLatencies_InOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var (
			m    Meter
			conn ConnStats
		)
		start := time.Now()
		b := NewBatchStats(&m)
		for _, took := range rapid.SliceOf(rapid.Int64Range(0, int64(3*time.Millisecond))).Draw(rt, "ns") {
			b.Ran(proto.OpGetData, start, false)
			b.Settle(start.Add(time.Duration(took)))
			conn.Replied(time.Duration(took), 1, start)
		}
		for name, latencies := range map[string]func() (int64, float64, int64){"server": m.Latencies, "connection": conn.Latencies} {
			if least, mean, most := latencies(); float64(least) > mean || mean > float64(most) {
				rt.Errorf("%s: %d/%v/%d", name, least, mean, most)
			}
		}
	})
}
