package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// rank is how a consumer waits when there is nothing to take. It is for a session.
type waitRole int

const (
	noRole     waitRole = iota
	roleChief           // it watches the queue whenever it waits: so a queue with one consumer costs no line
	roleInLine          // it stands in line, where only the first watches the queue
)

const (
	chiefName  = "chief"
	waitPrefix = "wait-"
	// clockLook is how often who waits for an item's time looks at the clock, which somebody may have set.
	clockLook = 15 * time.Second
)

// watches reports whether await lists the queue at once.
func (c *consumer) watchesQueue() bool { return c.role == roleChief || c.firstInLine }

// await waits until something may have changed in the queue, and lists it anew; it does not wait if there is something.
func (e *engine) await(ctx context.Context) error {
	c := &e.consumer
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		return err
	}
	if c.session != s {
		c.session, c.role, c.linePath, c.firstInLine = s, noRole, "", false // they went with their session
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
	nudged, err := e.awaitTurnToWatch(ctx)
	c.available, c.listedAt = nil, time.Time{}
	if err != nil || nudged {
		return err
	}
	fires, err := e.refresh(ctx, true)
	if err != nil || len(c.takeable(1, time.Now())) > 0 {
		return err
	}
	var due <-chan time.Time
	if len(c.available) > 0 {
		until := min(clockLook, time.Until(time.UnixMilli(c.available[0].due)))
		timer := time.NewTimer(until)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-fires[0]:
	case <-fires[1]:
	case <-due:
		return nil // what is listed is still so: else the watch would have fired
	case <-e.wakeLeader:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.available, c.listedAt = nil, time.Time{}
	return nil
}

// stand waits for its turn to watch the queue. nudged says that somebody wants an answer before that.
func (e *engine) awaitTurnToWatch(ctx context.Context) (nudged bool, err error) {
	c := &e.consumer
	if c.role == noRole {
		if err := e.tryBecomeChief(ctx); err != nil {
			return false, err
		}
	}
	for c.role != roleChief && !c.firstInLine {
		if c.linePath == "" {
			path := znodepath.Join(e.members, waitPrefix)
			o := recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true, Parents: true}
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
		waiting := waiters(names)
		own := slices.Index(waiting, c.linePath[len(e.members)+1:])
		switch {
		case own == 0:
			c.firstInLine = true
		case own < 0: // somebody has deleted it
			c.linePath = ""
		default:
			if nudged, err := e.awaitChange(ctx, znodepath.Join(e.members, waiting[own-1])); nudged || err != nil {
				return nudged, err
			}
		}
	}
	return false, nil
}

// apply tries to become chief.
func (e *engine) tryBecomeChief(ctx context.Context) error {
	c := &e.consumer
	_, err := e.client.Create(ctx, znodepath.Join(e.members, chiefName), []byte(e.id), recipes.CreateOptions{Mode: recipes.Ephemeral, Parents: true})
	switch {
	case err == nil:
		c.role = roleChief
		if place := c.leaveLine(); place != "" {
			e.deleteInBackground(place)
		}
	case errors.Is(err, zk.ErrNodeExists):
		c.role = roleInLine
	default:
		return err
	}
	return nil
}

// stepDown lets somebody else become chief. If the delete waits to be sent when the session ends, it is sent in the next one, and another may be chief
// by then: it goes on as before, and so there are two for a while, which costs requests and nothing else.
func (e *engine) resignChief(ctx context.Context) error {
	c := &e.consumer
	if c.role != roleChief || c.session.Context().Err() != nil {
		return nil
	}
	c.role = noRole
	return e.client.DeleteGuaranteed(ctx, znodepath.Join(e.members, chiefName))
}

// leaveLine returns the znode that is to be deleted, or "".
func (c *consumer) leaveLine() string {
	place := c.linePath
	c.linePath, c.firstInLine = "", false
	if place == "" || c.session.Context().Err() != nil {
		return ""
	}
	return place
}

// waiters returns those of the members that stand in line.
func waiters(names []string) []string {
	all := recipes.Sequential(names)
	return slices.DeleteFunc(all, func(name string) bool {
		_, prefix, _ := recipes.Sequence(name)
		return !strings.HasSuffix(prefix, waitPrefix)
	})
}

// awaitGone waits until something happens to the znode of another. It watches the data and not the existence: where there is no znode any
// more, that leaves no watch behind.
func (e *engine) awaitChange(ctx context.Context, path string) (nudged bool, err error) {
	_, _, fires, err := e.client.GetW(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, nil
	case err != nil:
		return false, err
	}
	select {
	case <-fires:
		return false, nil
	case <-e.wakeLeader:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
