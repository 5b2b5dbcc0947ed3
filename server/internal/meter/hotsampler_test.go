package meter

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// The cost of the sample for a request of a busy server, which is rarely kept, and for a request
// that is kept.
func BenchmarkHot(b *testing.B) {
	body := (&proto.PathWatchRequest{Path: "/app/config/current"}).Append(nil)
	for _, name := range []string{"busy", "kept"} {
		b.Run(name, func(b *testing.B) {
			var h HotSampler
			var skip SampleSkip
			h.Start(time.Now())
			b.ReportAllocs()
			for b.Loop() {
				if name == "kept" {
					h.every.Store(0) // it rises
				}
				h.Sample(&skip, 1, proto.OpGetData, body)
			}
		})
	}
}
