package interop

import (
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// span is a time in which a peer certainly held an object: from the arrival of the answer to the
// sending of the release.
type span struct {
	who      string
	from, to time.Time
	weight   int // of a share
}

// history holds the spans of a scenario. Safe for concurrent use.
type history struct {
	mu    sync.Mutex
	spans []span
}

// add records that a peer held an object from the answer that granted it to the request that
// released it.
func (h *history) add(who string, got, back *answer, weight int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans = append(h.spans, span{who, got.got, back.sent, weight})
}

// atMost checks that concurrent holders never exceeded limit together.
func (h *history) atMost(limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	byStart := slices.SortedFunc(slices.Values(h.spans), func(a, b span) int { return a.from.Compare(b.from) })
	var open []span
	for _, s := range byStart {
		open = slices.DeleteFunc(open, func(o span) bool { return !o.to.After(s.from) })
		open = append(open, s)
		sum, who := 0, []string{}
		for _, o := range open {
			sum += o.weight
			who = append(who, o.who)
		}
		if sum > limit {
			must.Failf("%v had %d of %d together", who, sum, limit)
		}
	}
}
