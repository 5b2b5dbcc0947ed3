package interop

import (
	"context"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// loss is an object that a victim holds and others wait for.
type loss struct {
	what  string
	waits *answer
	want  string // the expected answer to waits
	// Actions after the death, before and after waits is answered. before may be nil.
	before, after func()
}

// death kills a process of each language that holds one of each object. Waiters get it when the
// session has expired, and not before; the process's ephemerals vanish.
func (c *cast) death(ctx context.Context) {
	var losses []loss
	var gone []string
	for _, v := range c.victims {
		must.Doing(v.lang, func() {
			l, g := c.bequeath(ctx, v)
			losses, gone = append(losses, l...), append(gone, g...)
		})
	}
	for _, l := range losses {
		if l.waits.answered() {
			must.Failf("%s: got before its holder died: %q, %w", l.what, l.waits.words, l.waits.err)
		}
	}
	var kills []func()
	for _, v := range c.victims {
		kills = append(kills, func() { must.Do(v.kill()) })
	}
	must.All(kills...)
	var checks []func()
	for _, l := range losses {
		checks = append(checks, func() {
			must.Doing(l.what, func() {
				if l.before != nil {
					l.before()
				}
				cases.Expect("the answer", l.waits.wait(ctx), l.want)
				l.after()
			})
		})
	}
	for _, path := range gone {
		checks = append(checks, func() {
			cases.Eventually(ctx, path+" goes with its owner", func() bool {
				there, _, err := c.conn.Exists(path)
				return err == nil && !there
			})
		})
	}
	must.All(checks...)
}

// bequeath makes a victim acquire one of each object while a process of each other language waits.
// It also returns the paths of znodes that must vanish.
func (c *cast) bequeath(ctx context.Context, v *peer) (losses []loss, gone []string) {
	root := "/death-" + v.lang
	for _, held := range []struct {
		verb string
		args []any
		dir  string // where waiters stand
	}{
		{"lock", nil, ""},
		{"wlock", nil, ""},
		{"acquire", []any{1}, "/locks"},
	} {
		path := root + "-" + held.verb
		args := append([]any{path}, held.args...)
		v.handle().do(ctx, held.verb, args...)
		waiting := 0
		if held.dir == "" {
			waiting = 1 // the holder stands there too
		}
		for _, p := range c.heirs(v) {
			h := p.handle()
			waits := h.ask(held.verb, args...)
			waiting++
			c.standing(ctx, path+held.dir, waiting)
			losses = append(losses, loss{
				what: held.verb + " of " + v.lang + " to " + p.lang, waits: waits,
				after: func() { release(ctx, h) },
			})
		}
	}
	for _, kind := range []string{"latch", "select"} {
		losses = append(losses, c.bequeathLead(ctx, v, kind, root+"-"+kind)...)
	}
	losses = append(losses, c.bequeathItem(ctx, v, root+"-queue")...)
	v.handle().do(ctx, "join", root+"-group", "member", Hex([]byte("x")))
	v.handle().do(ctx, "node", root+"-node", Hex([]byte("x")))
	v.handle().do(ctx, "register", root+"-discovery", "web", "id", "10.0.0.1", 80, "p")
	return losses, []string{root + "-group/member", root + "-node", root + "-discovery/web/id"}
}

// heirs returns the languages that wait for a victim's object: the others, or its own if no other
// shares it.
func (c *cast) heirs(v *peer) []*peer {
	var list []*peer
	for _, p := range c.peers {
		if p.lang != v.lang {
			list = append(list, p)
		}
	}
	return list
}

func (c *cast) bequeathLead(ctx context.Context, v *peer, kind, path string) []loss {
	leads := v.handle()
	leads.do(ctx, kind, path, "victim")
	leads.expect(ctx, "yes", "leader", patience)
	var losses []loss
	for i, p := range c.heirs(v) {
		h := p.handle()
		h.do(ctx, kind, path, p.lang)
		c.standing(ctx, path, 2+i)
		losses = append(losses, loss{
			what: kind + " of " + v.lang + " to " + p.lang, waits: h.ask("leader", patience), want: "yes",
			after: func() { release(ctx, h) },
		})
	}
	return losses
}

// bequeathItem makes the victim take an unacknowledged item from a queue per heir.
func (c *cast) bequeathItem(ctx context.Context, v *peer, path string) []loss {
	const kind = "locked"
	var losses []loss
	for _, p := range c.heirs(v) {
		path, item := path+"-"+p.lang, Hex([]byte("item"))
		put(ctx, p.handle(), kind, path, []byte("item"), 0)
		first, h := v.handle(), p.handle()
		first.do(ctx, "consume", kind, path)
		cases.Expect("the victim's item", first.do(ctx, "take", patience), item)
		h.do(ctx, "consume", kind, path)
		l := loss{
			what: "item of " + v.lang + " to " + p.lang, waits: h.ask("take", patience), want: item,
			after: func() {
				h.do(ctx, "ack")
				c.emptied(ctx, kind, path)
			},
		}
		if p.lang == Curator {
			l.before, l.after = func() { c.nudge(ctx, kind, path) }, func() { c.takesNudge(ctx, h, kind, path) }
		}
		losses = append(losses, l)
	}
	return losses
}

// nudge puts another item when the lock of a dead consumer has gone: Curator's consumer does not
// watch locks, and only a change makes it look at the items again.
func (c *cast) nudge(ctx context.Context, kind, path string) {
	c.standing(ctx, path+"/taken", 0)
	put(ctx, c.peers[0].handle(), kind, path, []byte("nudge"), 1)
}

func (c *cast) takesNudge(ctx context.Context, h *handle, kind, path string) {
	h.do(ctx, "ack")
	cases.Expect("the second item", take(ctx, h, kind, patience), Hex([]byte("nudge")))
	c.emptied(ctx, kind, path)
}
