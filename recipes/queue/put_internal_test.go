package queue

import (
	"context"
	"errors"
	"testing"

	"github.com/gozkd/gozkd/recipes"
)

// When the requests of a batch are sent each alone, the wait for a session must end when all
// callers without an answer have given up, and not before.
func TestPut_AbandonedInPart(t *testing.T) {
	for name, answer := range map[string]func(e *engine, batch []*putRequest){
		"stored":  func(e *engine, batch []*putRequest) { e.batchStored(t.Context(), batch, nil) },
		"refused": func(e *engine, batch []*putRequest) { e.finishBatch(batch, errors.New("refused")) },
	} {
		t.Run(name, func(t *testing.T) {
			stopped := false
			e := &engine{stopWaiting: func() { stopped = true }}
			for range 3 {
				e.inFlight = append(e.inFlight, &putRequest{result: make(chan error, 1)})
			}
			batch := e.inFlight
			answer(e, batch[:1])
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, p := range batch[1:] {
				if stopped {
					t.Error("the wait has ended for a caller that waits")
				}
				if err := e.abandonPut(ctx, p); !errors.Is(err, recipes.ErrOutcomeUnknown) {
					t.Error(err)
				}
			}
			if !stopped {
				t.Error("the wait goes on for nobody")
			}
		})
	}
}
