package server

import (
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// prefetchWindow is how many requests are prefetched together.
const prefetchWindow = datatree.PrefetchPaths

// prefetchInput prefetches the znodes that the next prefetchWindow requests of the input read. The
// caller holds the tree's lock.
func (s *state) prefetchInput(in *link.Input, maxBuffer int32) {
	if !s.tree.PrefetchPays() {
		return
	}
	var paths [prefetchWindow]string
	n, at := 0, in.At()
	for n < len(paths) {
		frame, err := in.Frame(maxBuffer)
		if frame == nil || err != nil { // burst reports it
			break
		}
		d := jute.NewDecoder(frame)
		var h proto.RequestHeader
		h.Decode(&d)
		if h.Op.Info().Class == proto.ClassRead {
			paths[n], _ = meter.RequestPath(h.Op, d.Rest())
		}
		n++
	}
	in.Back(at)
	s.tree.Prefetch(paths[:n])
}

// prefetchWrites prefetches the znodes that the first prefetchWindow requests read. The caller
// holds the tree's lock.
func (s *state) prefetchWrites(requests []consensus.Request) {
	if !s.tree.PrefetchPays() {
		return
	}
	var paths [prefetchWindow]string
	n := min(len(requests), len(paths))
	for i := range requests[:n] {
		r := &requests[i]
		if w := clientRequestOf(r.Ref); w != nil {
			paths[i], _ = meter.RequestPath(w.req.Op, w.req.Body)
		} else {
			committed := datatree.CommittedRequest(r.Payload, nil)
			paths[i], _ = meter.RequestPath(committed.Op, committed.Body)
		}
	}
	s.tree.Prefetch(paths[:n])
}
