package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// patience is how many milliseconds a peer waits.
const patience = 15000

// elects: two of each language stand. All report the same candidates in the same order, they lead
// in that order, one at a time, and a resignation tells the next.
func (c *cast) elects(names, kind string) func(ctx context.Context) error {
	kind = names + kind
	return func(ctx context.Context) error {
		path := "/" + kind + "-wakes"
		var line []*handle
		var ids []string
		for i := range 2 {
			for _, p := range c.sharers(names) {
				h, id := p.handle(), p.lang+strconv.Itoa(i)
				if _, err := h.do(ctx, kind, path, id); err != nil {
					return err
				}
				line, ids = append(line, h), append(ids, id)
				if err := c.standing(ctx, path, len(line)); err != nil {
					return err
				}
			}
		}
		for _, p := range c.sharers(names) {
			got, err := p.handle().do(ctx, "candidates", kind, path)
			if err := errors.Join(err, cases.Expect("candidates that "+p.lang+" sees", got, strings.Join(ids, " "))); err != nil {
				return err
			}
		}
		return c.leadInTurn(ctx, line)
	}
}

func (c *cast) leadInTurn(ctx context.Context, line []*handle) error {
	if err := expectYes(ctx, line[0], "leader", patience); err != nil {
		return err
	}
	for i, h := range line {
		if i+1 == len(line) {
			return release(ctx, h)
		}
		next := line[i+1]
		if got, err := next.yes(ctx, "leader", 1); err != nil || got {
			return errors.Join(err, fmt.Errorf("%s leads while %s does: %t", next.lang(), h.lang(), got))
		}
		waits := next.ask("leader", patience)
		if err := c.handsOver(ctx, h, waits); err != nil {
			return fmt.Errorf("%s to %s: %w", h.lang(), next.lang(), err)
		}
		if err := cases.Expect(next.lang()+" leads", strings.Join(waits.words, " "), "yes"); err != nil {
			return err
		}
	}
	return nil
}

// electsMany: all stand, lead for a moment or lose patience, and resign, repeatedly.
func (c *cast) electsMany(names, kind string) func(ctx context.Context) error {
	kind = names + kind
	return func(ctx context.Context) error {
		path := "/" + kind + "-many"
		count, err := c.newCounter(path + "-counter")
		if err != nil {
			return err
		}
		var had history
		err = c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) error {
			if _, err := h.do(ctx, kind, path, who); err != nil {
				return err
			}
			ms := patience
			if rnd.IntN(3) == 0 {
				ms = 1 + rnd.IntN(60)
			}
			got := h.ask("leader", ms)
			words, err := got.wait(ctx)
			if err != nil {
				return err
			}
			if words == "yes" {
				err = count.add(ctx, h)
			}
			back := h.ask("release")
			if words == "yes" {
				had.add(who, got, back, 1)
			}
			_, backErr := back.wait(ctx)
			return errors.Join(err, backErr)
		})
		return errors.Join(err, had.atMost(1), count.check(len(had.spans)), c.standing(ctx, path, 0))
	}
}
