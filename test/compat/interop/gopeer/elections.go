package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/recipes/election"
)

// awaiter waits until the handle leads.
type awaiter func(ctx context.Context) error

// addElections adds elections. The name of a kind stands and returns; "leader MS" waits for
// leadership; "candidates KIND" returns the ids in order.
func addElections(all map[string]verb) {
	all["latch"] = func(ctx context.Context, h *handle, a []string) string {
		l := election.NewLatch(h.client, a[0], a[1])
		must.Do(l.Start(context.WithoutCancel(ctx)))
		h.object = awaiter(func(ctx context.Context) error {
			_, err := l.Await(ctx)
			return err
		})
		return h.holds(closes(l))
	}
	for _, kind := range []string{"select", "kazoo-select", "extra-select"} {
		all[kind] = func(ctx context.Context, h *handle, a []string) string {
			return stand(ctx, h, newSelector(kind, h.client, a[0], a[1]))
		}
	}
	all["leader"] = func(ctx context.Context, h *handle, a []string) string {
		return yes(within(ctx, a[0], h.object.(awaiter)))
	}
	all["candidates"] = func(ctx context.Context, h *handle, a []string) string {
		list := newSelector(a[0], h.client, a[1], "").Candidates
		if a[0] == "latch" {
			list = election.NewLatch(h.client, a[1], "").Candidates
		}
		return strings.Join(must.Get(list(ctx)), " ")
	}
}

func newSelector(kind string, c *recipes.Client, path, id string) *election.Selector {
	if kind == "kazoo-select" {
		return election.NewKazooSelector(c, path, id)
	}
	return election.NewSelector(c, path, id)
}

// stand lets a selector lead once, until the handle is released.
func stand(ctx context.Context, h *handle, s *election.Selector) string {
	standing, giveUp := context.WithCancel(ctx)
	elected, resigned, done := make(chan struct{}), make(chan struct{}), make(chan error, 1) // done: buffered, as nobody may ask
	// The handle's release, or the end of the peer, stops and awaits it.
	go func() {
		done <- s.Lead(standing, func(ctx context.Context, _ *recipes.Hold) error {
			close(elected)
			select {
			case <-resigned:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	h.object = awaiter(func(ctx context.Context) error {
		select {
		case <-elected:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return h.holds(func(context.Context) error {
		close(resigned)
		select {
		case <-elected:
		default:
			giveUp()
		}
		err := <-done
		giveUp()
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lead: %w", err)
		}
		return nil
	})
}

func addBarriers(all map[string]verb) {
	all["barrier-set"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(barrier.New(h.client, a[0]).Set(ctx))
		return ""
	}
	all["barrier-remove"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(barrier.New(h.client, a[0]).Remove(ctx))
		return ""
	}
	all["barrier-wait"] = func(ctx context.Context, h *handle, a []string) string {
		return yes(within(ctx, a[1], barrier.New(h.client, a[0]).Wait))
	}
	all["enter"] = func(ctx context.Context, h *handle, a []string) string {
		h.object = must.Get(barrier.NewDouble(h.client, a[0], must.Get(strconv.Atoi(a[1])), "go").Enter(ctx))
		return "yes"
	}
	all["leave"] = func(ctx context.Context, h *handle, _ []string) string {
		must.Do(h.object.(*barrier.Participant).Leave(ctx))
		return "yes"
	}
}
