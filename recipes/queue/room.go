package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// roomPrefix begins the names of those who wait for room in a queue that has all it may have.
const roomPrefix = "room-"

// awaitRoom waits until the queue has less than it may have. Of those who wait only the first is told when something is taken; release lets
// the next one look.
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
		leave := func() { _ = held.Release(context.WithoutCancel(ctx)) } // it goes on in the background if need be
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

// awaitTaken waits until there is room.
func (e *engine) awaitTaken(ctx context.Context) error {
	for {
		names, _, fires, err := e.client.ChildrenW(ctx, e.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil:
			return err
		case len(names) < e.max:
			return nil
		}
		select {
		case <-fires:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// roomRule is line.Exclusive among those who wait for room.
func roomRule(names []string, own int) string {
	for own--; own >= 0; own-- {
		if _, prefix, _ := recipes.Sequence(names[own]); strings.HasSuffix(prefix, roomPrefix) {
			return names[own]
		}
	}
	return ""
}
