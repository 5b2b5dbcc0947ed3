package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// waitRole is how a consumer waits while there is nothing to take. It lasts as long as the session.
type waitRole int

const (
	noRole     waitRole = iota
	roleChief           // watches the queue itself; a queue with one consumer needs no line
	roleInLine          // stands in line; only the first in line watches the queue
)

const (
	chiefName  = "chief"
	waitPrefix = "wait-"
	// recheckInterval bounds how long a consumer waits for a due time without a look at the wall
	// clock, which somebody may have set, and how long it passes over items that cannot be taken.
	recheckInterval = 15 * time.Second
)

// await waits until the queue may have changed, or lists the queue and returns at once if there are
// items. Only the leader calls await.
func (e *engine) await(ctx context.Context) error {
	c := &e.consumer
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		return err
	}
	if c.session != s { // the znodes of the previous session were deleted with it
		c.session, c.role, c.linePath, c.firstInLine = s, noRole, "", false
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
	woken, err := e.awaitTurnToWatch(ctx)
	c.available, c.listedAt = nil, time.Time{}
	if err != nil || woken {
		return err
	}
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

// awaitTurnToWatch waits until this consumer may watch the queue, in line if another consumer is
// chief. woken means that a Try method wants an answer before that.
func (e *engine) awaitTurnToWatch(ctx context.Context) (woken bool, err error) {
	c := &e.consumer
	if c.role == noRole {
		if err := e.tryBecomeChief(ctx); err != nil {
			return false, err
		}
	}
	for c.role != roleChief && !c.firstInLine {
		if c.linePath == "" {
			path := znodepath.Join(e.members, waitPrefix)
			o := recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true}
			if c.linePath, err = e.client.Create(ctx, path, nil, o); err != nil {
				return false, err
			}
		}
		names, _, err := e.client.Children(ctx, e.members)
		if err != nil {
			return false, err
		}
		if !slices.Contains(names, chiefName) {
			if err := e.tryBecomeChief(ctx); err != nil {
				return false, err
			}
			continue
		}
		waiting := slices.DeleteFunc(sequence.Sequential(names), func(name string) bool { return !isWaiting(name) })
		own := slices.Index(waiting, c.linePath[len(e.members)+1:])
		switch {
		case own == 0:
			c.firstInLine = true
		case own < 0: // somebody has deleted the place in line
			c.linePath = ""
		default:
			before := znodepath.Join(e.members, waiting[own-1])
			if woken, err := contend.AwaitChange(ctx, e.client, c.linePath, before, e.wakeLeader); woken || err != nil {
				return woken, err
			}
		}
	}
	return false, nil
}

// tryBecomeChief makes this consumer the chief, unless there is one.
func (e *engine) tryBecomeChief(ctx context.Context) error {
	c := &e.consumer
	_, err := e.client.Idempotent().Create(ctx, znodepath.Join(e.members, chiefName), []byte(e.id), recipes.CreateOptions{Ephemeral: true, Parents: true})
	switch {
	case err == nil:
		c.role = roleChief
		if place := c.leaveLine(); place != "" {
			e.deleteInBackground(place)
		}
	case errors.Is(err, proto.ErrNodeExists):
		c.role = roleInLine
	default:
		return err
	}
	return nil
}

// resignChief lets another consumer become chief. If the session ends before the delete is sent,
// the delete is sent in the next session and may hit another chief's znode. That chief continues,
// so for a while there are two, which only costs requests.
func (e *engine) resignChief(ctx context.Context) error {
	c := &e.consumer
	if c.role != roleChief || c.session.Context().Err() != nil {
		return nil
	}
	c.role = noRole
	return e.client.DeleteGuaranteed(ctx, znodepath.Join(e.members, chiefName))
}

// leaveLine gives up the place in line and returns the znode to delete; "" if none.
func (c *consumer) leaveLine() string {
	place := c.linePath
	c.linePath, c.firstInLine = "", false
	if place == "" || c.session.Context().Err() != nil {
		return ""
	}
	return place
}

var isWaiting, isAwaitingRoom = hasLabel(waitPrefix), hasLabel(roomPrefix)

// hasLabel returns a function that reports whether label and a number end a name.
func hasLabel(label string) func(name string) bool {
	return func(name string) bool {
		_, prefix, _ := sequence.Parse(name)
		return strings.HasSuffix(prefix, label)
	}
}
