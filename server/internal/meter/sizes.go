package meter

import (
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// Sizes holds the last, the smallest and the largest of some lengths in bytes. Each is stored plus
// one; 0: there is none.
type Sizes struct{ last, low, high atomic.Int64 }

// Record records a length.
func (z *Sizes) Record(n int64) { z.recordRun(n, n, n) }

func (z *Sizes) recordRun(last, low, high int64) {
	z.last.Store(last + 1)
	for old := z.low.Load(); (old == 0 || low+1 < old) && !z.low.CompareAndSwap(old, low+1); {
		old = z.low.Load()
	}
	for old := z.high.Load(); high+1 > old && !z.high.CompareAndSwap(old, high+1); {
		old = z.high.Load()
	}
}

func (z *Sizes) reset() {
	z.last.Store(0)
	z.low.Store(0)
	z.high.Store(0)
}

// Read returns the lengths, or -1 three times if no length was recorded.
func (z *Sizes) Read() facts.Sizes {
	return facts.Sizes{Last: z.last.Load() - 1, Min: z.low.Load() - 1, Max: z.high.Load() - 1}
}

type opHistograms [proto.NumOps]histogram.Histogram

func (o *opHistograms) of(op proto.OpCode) *histogram.Histogram { return &o[op.Index()] }

func (o *opHistograms) each(f func(op proto.OpCode, h *histogram.Histogram)) {
	for info := range proto.Ops() {
		if h := o.of(info.Code); !h.Empty() {
			f(info.Code, h)
		}
	}
}

func (o *opHistograms) choose(chosen func(proto.OpCode) bool) (hs []*histogram.Histogram) {
	o.each(func(op proto.OpCode, h *histogram.Histogram) {
		if chosen(op) {
			hs = append(hs, h)
		}
	})
	return hs
}

func (o *opHistograms) reset() {
	for i := range o {
		o[i].Reset()
	}
}
