package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// roomPrefix begins the names of producers' znodes that wait for room in a full queue.
const roomPrefix = "room-"

// awaitRoom waits until the queue has fewer than MaxItems items. Only the first of the waiting
// producers watches the queue; release lets the next producer do so.
func (e *engine) awaitRoom(ctx context.Context) (release func(), err error) {
	none := func() {}
	if e.max <= 0 {
		return none, nil
	}
	stat, err := e.client.Exists(ctx, e.path)
	if err != nil || stat == nil || int(stat.NumChildren) < e.max {
		return none, err
	}
	for {
		held, err := contend.Acquire(ctx, e.client, e.members, roomPrefix, nil, roomRule)
		if err != nil {
			return none, err
		}
		in, cancel := held.Within(ctx)
		err = e.awaitTaken(in)
		cancel()
		// continues in the background if needed
		leave := func() { _ = held.Release(context.WithoutCancel(ctx)) }
		if err == nil {
			return leave, nil
		}
		leave()
		if ctx.Err() != nil {
			return none, e.contextError(ctx, "put", false)
		}
		if !contend.IsLost(err) {
			return none, err
		}
	}
}

// awaitTaken waits until the queue has room.
func (e *engine) awaitTaken(ctx context.Context) error {
	for {
		names, _, watch, err := e.client.ChildrenW(ctx, e.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil:
			return err
		case len(names) < e.max:
			return nil
		}
		select {
		case <-watch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// roomRule is contend.Exclusive among the producers that wait for room.
func roomRule(names []string, own int) string {
	for own--; own >= 0; own-- {
		if _, prefix, _ := sequence.Parse(names[own]); strings.HasSuffix(prefix, roomPrefix) {
			return names[own]
		}
	}
	return ""
}
