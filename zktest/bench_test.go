package zktest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/zktest"
)

// BenchmarkStart measures the time from Start to the reply to the first create over TCP.
func BenchmarkStart(b *testing.B) {
	for _, members := range []int{1, 3, 5} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				r := record(b, func(t testing.TB) {
					begin := time.Now()
					e := zktest.StartEnsemble(t, members)
					must[string](t)(e.Connect(t).Create("/a", nil, 0, open))
					took = append(took, time.Since(begin))
				})
				if r.Failed() {
					b.Fatal(r.text())
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
			b.ReportMetric(float64(took[len(took)*95/100])/1e6, "p95-ms")
		})
	}
}
