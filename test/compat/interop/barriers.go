package interop

import (
	"context"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// barrier: a of each pair sets a barrier and b removes it, while two processes of each language
// wait.
func (c *cast) barrier(ctx context.Context) {
	eachPair("/barrier", c.peers, func(p pair, path string) {
		p.a.handle().do(ctx, "barrier-set", path)
		var waits []*answer
		for _, who := range c.peers {
			// A process that has seen the barrier.
			who.handle().expect(ctx, "no", "barrier-wait", path, 30)
			waits = append(waits, who.handle().ask("barrier-wait", path, patience), who.handle().ask("barrier-wait", path, patience))
		}
		stillWait(ctx, waits...)
		remove := p.b.handle().ask("barrier-remove", path)
		remove.wait(ctx)
		for _, w := range waits {
			cases.Expect("open in the end", w.wait(ctx), "yes")
			if w.got.Before(remove.sent) {
				must.Failf("the barrier opened before it was removed")
			}
		}
	})
}

// doubleBarrier: two of each language enter and leave; nobody is in before the last comes, or out
// before the last leaves.
func (c *cast) doubleBarrier(ctx context.Context) {
	var rounds []func()
	for i := range c.peers {
		rounds = append(rounds, func() { c.enterAndLeave(ctx, i) })
	}
	must.All(rounds...)
}

// enterAndLeave is doubleBarrier with a given first process.
func (c *cast) enterAndLeave(ctx context.Context, first int) {
	path := "/double-barrier-" + c.peers[first].lang
	members := 2 * len(c.peers)
	var all []*handle
	for i := range members {
		all = append(all, c.peers[(first+i)%len(c.peers)].handle())
	}
	var enters []*answer
	for i, h := range all {
		// In turn, so that each language is once the last but one, which counts and must not open.
		c.standing(ctx, path, i)
		stillWait(ctx, enters...)
		enters = append(enters, h.ask("enter", path, members))
	}
	passes(ctx, all, enters)
	c.leaves(ctx, path, all)
}

func (c *cast) leaves(ctx context.Context, path string, all []*handle) {
	var leaves []*answer
	for i, h := range all {
		if i+1 == len(all) {
			stillWait(ctx, leaves...)
		}
		leaves = append(leaves, h.ask("leave"))
	}
	passes(ctx, all, leaves)
	c.standing(ctx, path, 0)
}

// passes checks that all get through, and none before the last has come.
func passes(ctx context.Context, who []*handle, all []*answer) {
	last := all[len(all)-1]
	for i, a := range all {
		got := a.wait(ctx)
		cases.Expect(who[i].lang()+" passes", got, "yes")
		if a.got.Before(last.sent) {
			must.Failf("%s passed before the last came", who[i].lang())
		}
	}
}
