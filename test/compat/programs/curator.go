package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

func installCurator(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	c := curator{installMaven(ctx, root, "curator", "curator-recipes")}
	return c.version, c.check
}

// curator is two programs with Curator's discovery, a leader latch and a lock.
type curator struct{ javaProgram }

// check kills the ensemble's leader and the member that leads. The cards must say what Curator
// says.
func (c curator) check(ctx context.Context, w *world) string {
	const members = 2
	member := func(n int) []string { return []string{"member", w.connect(","), strconv.Itoa(n)} }
	view := func(what string) []string {
		return values(w.ask(ctx, "card", c.command(w, "CuratorProgram", "card", w.connect(","))), what)
	}
	whole := func() {
		w.await(ctx, "two members", func() error {
			if got, want := view("service"), []string{"2 services", "4 instances, 1 disabled"}; !slices.Equal(got, want) {
				return fmt.Errorf("in Curator: %q, not %q", got, want)
			}
			if got, want := view("lock"), []string{"1 lock", "1 election", "2 waiting"}; !slices.Equal(got, want) {
				return fmt.Errorf("in Curator: %q, not %q", got, want)
			}
			return nil
		})
	}
	for n := range members {
		w.start(fmt.Sprintf("member-%d", n), c.command(w, "CuratorProgram", member(n)...))
	}
	whole()
	w.killLeader(ctx)
	whole()
	w.returnLeader(ctx)
	old := view("leader")[0]
	for _, p := range w.started {
		if p.Name() == old {
			must.Do(p.Kill())
		}
	}
	w.await(ctx, "another leader", func() error {
		if again := view("leader")[0]; again == old {
			return fmt.Errorf("%s, which was killed, still leads", again)
		}
		return nil
	})
	number := must.Get(strconv.Atoi(strings.TrimPrefix(old, "member-")))
	w.start(old, c.command(w, "CuratorProgram", member(number)...))
	whole()
	w.awaitCard(ctx, "Services", view("service")...)
	w.awaitCard(ctx, "Locks and elections", view("lock")...)
	return "4 instances, a latch and a lock, as Curator says"
}
