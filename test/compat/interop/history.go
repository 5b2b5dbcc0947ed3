package interop

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// span is a time in which a peer surely had something: from the arrival of its answer to the sending of the request to let go.
type span struct {
	who      string
	from, to time.Time
	weight   int // of a share: how much of what there is
}

// history is what the peers had, in one scenario. Safe for concurrent use.
type history struct {
	mu    sync.Mutex
	spans []span
}

// add records that who had something from the answer that gave it to the request that gives it back.
func (h *history) add(who string, got, back *answer, weight int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans = append(h.spans, span{who, got.got, back.sent, weight})
}

// atMost checks that those who had something at one time never had more than limit together.
func (h *history) atMost(limit int) error {
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
			return fmt.Errorf("%v had %d of %d together", who, sum, limit)
		}
	}
	return nil
}
