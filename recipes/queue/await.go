package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// rank is how a consumer waits when there is nothing to take. It is for a session.
type rank int

const (
	unranked rank = iota
	chief         // it watches the queue whenever it waits: so a queue with one consumer costs no line
	junior        // it stands in line, where only the first watches the queue
)

const (
	chiefName  = "chief"
	waitPrefix = "wait-"
	// clockLook is how often who waits for an item's time looks at the clock, which somebody may have set.
	clockLook = 15 * time.Second
)

// watches reports whether await lists the queue at once.
func (c *consumer) watches() bool { return c.rank == chief || c.first }

// await waits until something may have changed in the queue, and lists it anew; it does not wait if there is something.
func (e *engine) await(ctx context.Context) error {
	c := &e.consumer
	s, err := e.client.AwaitSession(ctx)
	if err != nil {
		return err
	}
	if c.session != s {
		c.session, c.rank, c.place, c.first = s, unranked, "", false // they went with their session
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	err = e.watch(in)
	if s.Context().Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func (e *engine) watch(ctx context.Context) error {
	c := &e.consumer
	nudged, err := e.stand(ctx)
	c.list, c.listed = nil, time.Time{}
	if err != nil || nudged {
		return err
	}
	fires, err := e.look(ctx, true)
	if err != nil || len(c.pick(1, time.Now())) > 0 {
		return err
	}
	var due <-chan time.Time
	if len(c.list) > 0 {
		until := min(clockLook, time.Until(time.UnixMilli(c.list[0].due)))
		timer := time.NewTimer(until)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-fires[0]:
	case <-fires[1]:
	case <-due:
		return nil // what is listed is still so: else the watch would have fired
	case <-e.nudge:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.list, c.listed = nil, time.Time{}
	return nil
}

// stand waits for its turn to watch the queue. nudged says that somebody wants an answer before that.
func (e *engine) stand(ctx context.Context) (nudged bool, err error) {
	c := &e.consumer
	if c.rank == unranked {
		if err := e.apply(ctx); err != nil {
			return false, err
		}
	}
	for c.rank != chief && !c.first {
		if c.place == "" {
			path := contend.Child(e.members, waitPrefix)
			o := recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true, Parents: true}
			if c.place, err = e.client.Create(ctx, path, nil, o); err != nil {
				return false, err
			}
		}
		names, _, err := e.client.Children(ctx, e.members)
		if err != nil {
			return false, err
		}
		if !slices.Contains(names, chiefName) {
			if err := e.apply(ctx); err != nil {
				return false, err
			}
			continue
		}
		waiting := waiters(names)
		own := slices.Index(waiting, c.place[len(e.members)+1:])
		switch {
		case own == 0:
			c.first = true
		case own < 0: // somebody has deleted it
			c.place = ""
		default:
			if nudged, err := e.awaitGone(ctx, contend.Child(e.members, waiting[own-1])); nudged || err != nil {
				return nudged, err
			}
		}
	}
	return false, nil
}

// apply tries to become chief.
func (e *engine) apply(ctx context.Context) error {
	c := &e.consumer
	_, err := e.client.Create(ctx, contend.Child(e.members, chiefName), []byte(e.id), recipes.CreateOptions{Mode: recipes.Ephemeral, Parents: true})
	switch {
	case err == nil:
		c.rank = chief
		if place := c.leaveLine(); place != "" {
			e.drop(place)
		}
	case errors.Is(err, zk.ErrNodeExists):
		c.rank = junior
	default:
		return err
	}
	return nil
}

// stepDown lets somebody else become chief. If the delete waits to be sent when the session ends, it is sent in the next one, and another may be chief
// by then: it goes on as before, and so there are two for a while, which costs requests and nothing else.
func (e *engine) stepDown(ctx context.Context) error {
	c := &e.consumer
	if c.rank != chief || c.session.Context().Err() != nil {
		return nil
	}
	c.rank = unranked
	return e.client.DeleteGuaranteed(ctx, contend.Child(e.members, chiefName))
}

// leaveLine returns the znode that is to be deleted, or "".
func (c *consumer) leaveLine() string {
	place := c.place
	c.place, c.first = "", false
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
func (e *engine) awaitGone(ctx context.Context, path string) (nudged bool, err error) {
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
	case <-e.nudge:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
