package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// taker is the consuming side of all queues.
type taker interface {
	Take(ctx context.Context) (queue.Message, error)
	TakeLocked(ctx context.Context) (*queue.Item, error)
	Close() error
}

// putter puts an item; args are the request's.
type putter func(ctx context.Context, data []byte, args []string) error

// consumer is a taker with its unacknowledged item.
type consumer struct {
	taker
	locked bool
	item   *queue.Item
}

// addQueues adds queues. "put KIND PATH DATA [PRIORITY|EPOCH_MS|ID]" puts an item. "consume KIND
// PATH" makes the handle a consumer; "take MS [strict]" returns the next item, or none, also if
// an item that came at that moment goes back; with strict, that is an error. In queues with locks
// the item stays until "ack", or until "return" gives it back.
func addQueues(all map[string]verb) {
	all["put"] = func(ctx context.Context, h *handle, a []string) string {
		_, put, _ := open(h.client, a[0], a[1])
		// Not closed: other consumers of the queue in this process share its state.
		must.Do(put(ctx, interop.Unhex(a[2]), a))
		return ""
	}
	all["consume"] = func(_ context.Context, h *handle, a []string) string {
		t, _, locked := open(h.client, a[0], a[1])
		h.object = &consumer{taker: t, locked: locked}
		return h.holds(closes(t))
	}
	all["take"] = func(ctx context.Context, h *handle, a []string) string {
		c := h.object.(*consumer)
		var data []byte
		got := within(ctx, a[0], func(ctx context.Context) error {
			if c.locked {
				item, err := c.TakeLocked(ctx)
				if err == nil {
					c.item, data = item, item.Data
				}
				return err
			}
			m, err := c.Take(ctx)
			data = m.Data
			if len(a) > 1 && errors.Is(err, recipes.ErrOutcomeUnknown) {
				must.Failf("the outcome is unknown: %v", err)
			}
			return err
		})
		if !got {
			return "none"
		}
		return interop.Hex(data)
	}
	all["ack"] = func(ctx context.Context, h *handle, _ []string) string {
		must.Do(h.object.(*consumer).item.Done(ctx))
		return ""
	}
	all["return"] = func(ctx context.Context, h *handle, _ []string) string {
		must.Do(h.object.(*consumer).item.Release(ctx))
		return ""
	}
}

func open(c *recipes.Client, kind, path string) (t taker, put putter, locked bool) {
	plain := func(q *queue.Queue) (taker, putter) {
		return q, func(ctx context.Context, data []byte, _ []string) error { return q.Put(ctx, data) }
	}
	byPriority := func(q *queue.Priority) (taker, putter) {
		return q, func(ctx context.Context, data []byte, args []string) error {
			priority := int64(100)
			if len(args) > 3 {
				priority = must.Get(strconv.ParseInt(args[3], 10, 32))
			}
			return q.Put(ctx, int32(priority), data)
		}
	}
	switch kind {
	case "simple":
		t, put = plain(queue.NewSimple(c, path))
	case "queue":
		t, put = plain(queue.New(c, path))
	case "locked":
		locked = true
		t, put = plain(queue.New(c, path+"/entries", queue.Locks(path+"/taken")))
	case "priority":
		t, put = byPriority(queue.NewPriority(c, path))
	case "kazoo":
		t, put = byPriority(queue.NewKazoo(c, path))
	case "kazoo-locked":
		locked = true
		t, put = byPriority(queue.NewKazooLocking(c, path))
	case "delay":
		q := queue.NewDelay(c, path)
		t, put = q, func(ctx context.Context, data []byte, args []string) error {
			return q.Put(ctx, time.UnixMilli(must.Get(strconv.ParseInt(args[3], 10, 64))), data)
		}
	case "id":
		q := queue.New(c, path)
		t, put = q, func(ctx context.Context, data []byte, args []string) error { return q.PutID(ctx, args[3], data) }
	default:
		must.Failf("no queue %s", kind)
	}
	return t, put, locked
}
