package interop

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// barrier: a of each pair sets a barrier and b removes it, while two processes of each language
// wait.
func (c *cast) barrier(ctx context.Context) error {
	return eachPair("/barrier", c.peers, func(p pair, path string) error {
		if _, err := p.a.handle().do(ctx, "barrier-set", path); err != nil {
			return err
		}
		var waits []*answer
		for _, who := range c.peers {
			// A process that has seen the barrier.
			if got, err := who.handle().yes(ctx, "barrier-wait", path, 30); err != nil || got {
				return errors.Join(err, fmt.Errorf("open for %s: %t", who.lang, got))
			}
			waits = append(waits, who.handle().ask("barrier-wait", path, patience), who.handle().ask("barrier-wait", path, patience))
		}
		if err := stillWait(ctx, waits...); err != nil {
			return err
		}
		remove := p.b.handle().ask("barrier-remove", path)
		if _, err := remove.wait(ctx); err != nil {
			return err
		}
		for _, w := range waits {
			got, err := w.wait(ctx)
			if err := errors.Join(err, cases.Expect("open in the end", got, "yes")); err != nil {
				return err
			}
			if w.got.Before(remove.sent) {
				return errors.New("the barrier opened before it was removed")
			}
		}
		return nil
	})
}

// doubleBarrier: two of each language enter and leave; nobody is in before the last comes, or out
// before the last leaves.
func (c *cast) doubleBarrier(ctx context.Context) error {
	var rounds []func() error
	for i := range c.peers {
		rounds = append(rounds, func() error { return c.enterAndLeave(ctx, i) })
	}
	return together(rounds...)
}

// enterAndLeave is doubleBarrier with a given first process.
func (c *cast) enterAndLeave(ctx context.Context, first int) error {
	path := "/double-barrier-" + c.peers[first].lang
	members := 2 * len(c.peers)
	var all []*handle
	for i := range members {
		all = append(all, c.peers[(first+i)%len(c.peers)].handle())
	}
	var enters []*answer
	for i, h := range all {
		// In turn, so that each language is once the last but one, which counts and must not open.
		if err := errors.Join(c.standing(ctx, path, i), stillWait(ctx, enters...)); err != nil {
			return err
		}
		enters = append(enters, h.ask("enter", path, members))
	}
	if err := passes(ctx, all, enters); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	return c.leaves(ctx, path, all)
}

func (c *cast) leaves(ctx context.Context, path string, all []*handle) error {
	var leaves []*answer
	for i, h := range all {
		if i+1 == len(all) {
			if err := stillWait(ctx, leaves...); err != nil {
				return fmt.Errorf("leave: %w", err)
			}
		}
		leaves = append(leaves, h.ask("leave"))
	}
	if err := passes(ctx, all, leaves); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return c.standing(ctx, path, 0)
}

// passes checks that all get through, and none before the last has come.
func passes(ctx context.Context, who []*handle, all []*answer) error {
	last := all[len(all)-1]
	for i, a := range all {
		got, err := a.wait(ctx)
		if err := errors.Join(err, cases.Expect(who[i].lang()+" passes", got, "yes")); err != nil {
			return err
		}
		if a.got.Before(last.sent) {
			return fmt.Errorf("%s passed before the last came", who[i].lang())
		}
	}
	return nil
}
