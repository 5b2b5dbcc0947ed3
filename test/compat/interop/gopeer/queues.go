package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// taker is the consuming side of all queues.
type taker interface {
	Take(ctx context.Context) (queue.Message, error)
	TakeLocked(ctx context.Context) (*queue.Item, error)
	Close(ctx context.Context) error
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
// PATH" makes the handle a consumer; "take MS" returns the next item, or none. In queues with locks
// the item stays until "ack", or until "return" gives it back.
func addQueues(all map[string]verb) {
	all["put"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[2])
		if err != nil {
			return "", err
		}
		_, put, _, err := open(h.client, a[0], a[1])
		if err != nil {
			return "", err
		}
		// Not closed: other consumers of the queue in this process share its state.
		return "", put(ctx, data, a)
	}
	all["consume"] = func(_ context.Context, h *handle, a []string) (string, error) {
		t, _, locked, err := open(h.client, a[0], a[1])
		if err != nil {
			return "", err
		}
		h.object = &consumer{taker: t, locked: locked}
		return h.holds(t.Close, nil)
	}
	all["take"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		c := h.object.(*consumer)
		var data []byte
		got, err := within(ctx, a[0], func(ctx context.Context) error {
			if c.locked {
				item, err := c.TakeLocked(ctx)
				if err == nil {
					c.item, data = item, item.Data
				}
				return err
			}
			m, err := c.Take(ctx)
			data = m.Data
			return err
		})
		if err != nil || !got {
			return "none", err
		}
		return tohex(data), nil
	}
	all["ack"] = func(ctx context.Context, h *handle, _ []string) (string, error) {
		return "", h.object.(*consumer).item.Done(ctx)
	}
	all["return"] = func(ctx context.Context, h *handle, _ []string) (string, error) {
		return "", h.object.(*consumer).item.Return(ctx)
	}
}

func open(c *recipes.Client, kind, path string) (t taker, put putter, locked bool, err error) {
	plain := func(q *queue.Queue) (taker, putter) {
		return q, func(ctx context.Context, data []byte, _ []string) error { return q.Put(ctx, data) }
	}
	byPriority := func(q *queue.Priority) (taker, putter) {
		return q, func(ctx context.Context, data []byte, args []string) error {
			priority := queue.KazooDefault
			if len(args) > 3 {
				if priority, err = strconv.Atoi(args[3]); err != nil || priority < math.MinInt32 || priority > math.MaxInt32 {
					return errors.Join(err, fmt.Errorf("no priority: %s", args[3]))
				}
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
			ms, err := strconv.ParseInt(args[3], 10, 64)
			if err != nil {
				return err
			}
			return q.Put(ctx, time.UnixMilli(ms), data)
		}
	case "id":
		q := queue.NewID(c, path)
		t, put = q, func(ctx context.Context, data []byte, args []string) error { return q.Put(ctx, args[3], data) }
	default:
		err = fmt.Errorf("no queue %s", kind)
	}
	return t, put, locked, err
}
