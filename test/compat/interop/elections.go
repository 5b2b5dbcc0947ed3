package interop

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// patience is how many milliseconds a peer waits.
const patience = 15000

// elects: two of each language stand. All report the same candidates in the same order, they lead
// in that order, one at a time, and a resignation tells the next.
func (c *cast) elects(names, kind string) func(ctx context.Context) {
	kind = names + kind
	return func(ctx context.Context) {
		path := "/" + kind + "-wakes"
		var line []*handle
		var ids []string
		for i := range 2 {
			for _, p := range c.sharers(names) {
				h, id := p.handle(), p.lang+strconv.Itoa(i)
				h.do(ctx, kind, path, id)
				line, ids = append(line, h), append(ids, id)
				c.standing(ctx, path, len(line))
			}
		}
		for _, p := range c.sharers(names) {
			cases.Expect("candidates that "+p.lang+" sees", p.handle().do(ctx, "candidates", kind, path), strings.Join(ids, " "))
		}
		c.leadInTurn(ctx, line)
	}
}

func (c *cast) leadInTurn(ctx context.Context, line []*handle) {
	line[0].expect(ctx, "yes", "leader", patience)
	for i, h := range line {
		if i+1 == len(line) {
			release(ctx, h)
			return
		}
		next := line[i+1]
		next.expect(ctx, "no", "leader", 1)
		waits := next.ask("leader", patience)
		must.Doing(h.lang()+" to "+next.lang(), func() { c.handsOver(ctx, h, waits) })
		cases.Expect(next.lang()+" leads", strings.Join(waits.words, " "), "yes")
	}
}

// electsMany: all stand, lead for a moment or lose patience, and resign, repeatedly.
func (c *cast) electsMany(names, kind string) func(ctx context.Context) {
	kind = names + kind
	return func(ctx context.Context) {
		path := "/" + kind + "-many"
		count := c.newCounter(path + "-counter")
		var had history
		c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) {
			h.do(ctx, kind, path, who)
			ms := patience
			if rnd.IntN(3) == 0 {
				ms = 1 + rnd.IntN(60)
			}
			got := h.ask("leader", ms)
			if got.wait(ctx) == "yes" {
				got.held(ctx, h, &had, who, 1, count.add)
			} else {
				release(ctx, h)
			}
		})
		had.atMost(1)
		count.check(len(had.spans))
		c.standing(ctx, path, 0)
	}
}
