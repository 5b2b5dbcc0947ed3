package queue

import (
	"context"
	"time"
)

// recheckInterval bounds how long a consumer waits for a due time without a look at the wall clock,
// which somebody may have set, and how long it passes over items that cannot be taken.
const recheckInterval = 15 * time.Second

// await waits until the queue may have changed, or lists the queue and returns at once if there are
// items. Only the leader calls await.
func (e *engine) await(ctx context.Context) error {
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		return err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	err = e.waitForItems(in)
	if s.Context().Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func (e *engine) waitForItems(ctx context.Context) error {
	c := &e.consumer
	watches, err := e.refresh(ctx, true)
	if err != nil || len(c.takeable(1, time.Now())) > 0 {
		return err
	}
	var due <-chan time.Time
	if len(c.available) > 0 || len(c.skipped) > 0 {
		until := recheckInterval
		if len(c.available) > 0 {
			until = min(until, time.Until(time.UnixMilli(c.available[0].due)))
		}
		due = time.After(until)
	}
	select {
	case <-watches[0]:
	case <-watches[1]:
	case <-due:
		if len(c.skipped) == 0 {
			return nil // the listing is current: otherwise the watch would have fired
		}
	case <-e.wakeLeader:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.available, c.listedAt = nil, time.Time{}
	return nil
}
