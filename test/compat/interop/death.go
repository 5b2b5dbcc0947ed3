package interop

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// loss is an object that a victim holds and others wait for.
type loss struct {
	what  string
	waits *answer
	want  string // the expected answer to waits
	// Actions after the death, before and after waits is answered. nil: none.
	before, after func() error
}

// death kills a process of each language that holds one of each object. Waiters get it when the
// session has expired, and not before; the process's ephemerals vanish.
// before; what was to vanish with the process does.
func (c *cast) death(ctx context.Context) error {
	var losses []loss
	var gone []string
	for _, v := range c.victims {
		l, g, err := c.bequeath(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.lang, err)
		}
		losses, gone = append(losses, l...), append(gone, g...)
	}
	for _, l := range losses {
		if l.waits.answered() {
			return fmt.Errorf("%s: got before its holder died: %q, %w", l.what, l.waits.words, l.waits.err)
		}
	}
	var kills []func() error
	for _, v := range c.victims {
		kills = append(kills, v.kill)
	}
	if err := together(kills...); err != nil {
		return err
	}
	var checks []func() error
	for _, l := range losses {
		checks = append(checks, func() error {
			if l.before != nil {
				if err := l.before(); err != nil {
					return fmt.Errorf("%s: %w", l.what, err)
				}
			}
			got, err := l.waits.wait(ctx)
			if err == nil {
				err = cases.Expect("the answer", got, l.want)
			}
			if err == nil && l.after != nil {
				err = l.after()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", l.what, err)
			}
			return nil
		})
	}
	for _, path := range gone {
		checks = append(checks, func() error {
			return cases.Eventually(ctx, path+" goes with its owner", func() bool {
				there, _, err := c.conn.Exists(path)
				return err == nil && !there
			})
		})
	}
	return together(checks...)
}

// bequeath makes a victim acquire one of each object while a process of each other language waits.
// It also returns the paths of znodes that must vanish.
func (c *cast) bequeath(ctx context.Context, v *peer) (losses []loss, gone []string, err error) {
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
		if _, err := v.handle().do(ctx, held.verb, args...); err != nil {
			return nil, nil, err
		}
		waiting := 0
		if held.dir == "" {
			waiting = 1 // the holder stands there too
		}
		for _, p := range c.heirs(v) {
			h := p.handle()
			waits := h.ask(held.verb, args...)
			waiting++
			if err := c.standing(ctx, path+held.dir, waiting); err != nil {
				return nil, nil, err
			}
			losses = append(losses, loss{
				what: held.verb + " of " + v.lang + " to " + p.lang, waits: waits,
				after: func() error { return release(ctx, h) },
			})
		}
	}
	for _, kind := range []string{"latch", "select"} {
		l, err := c.bequeathLead(ctx, v, kind, root+"-"+kind)
		if err != nil {
			return nil, nil, err
		}
		losses = append(losses, l...)
	}
	l, err := c.bequeathItem(ctx, v, root+"-queue")
	if err != nil {
		return nil, nil, err
	}
	losses = append(losses, l...)
	_, err1 := v.handle().do(ctx, "join", root+"-group", "member", tohex([]byte("x")))
	_, err2 := v.handle().do(ctx, "node", root+"-node", tohex([]byte("x")))
	_, err3 := v.handle().do(ctx, "register", root+"-discovery", "web", "id", "10.0.0.1", 80, "p")
	return losses, []string{root + "-group/member", root + "-node", root + "-discovery/web/id"}, errors.Join(err1, err2, err3)
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

func (c *cast) bequeathLead(ctx context.Context, v *peer, kind, path string) ([]loss, error) {
	leads := v.handle()
	if _, err := leads.do(ctx, kind, path, "victim"); err != nil {
		return nil, err
	}
	if err := expectYes(ctx, leads, "leader", patience); err != nil {
		return nil, err
	}
	var losses []loss
	for i, p := range c.heirs(v) {
		h := p.handle()
		if _, err := h.do(ctx, kind, path, p.lang); err != nil {
			return nil, err
		}
		if err := c.standing(ctx, path, 2+i); err != nil {
			return nil, err
		}
		losses = append(losses, loss{
			what: kind + " of " + v.lang + " to " + p.lang, waits: h.ask("leader", patience), want: "yes",
			after: func() error { return release(ctx, h) },
		})
	}
	return losses, nil
}

// bequeathItem makes the victim take an unacknowledged item from a queue per heir.
func (c *cast) bequeathItem(ctx context.Context, v *peer, path string) ([]loss, error) {
	const kind = "locked"
	var losses []loss
	for _, p := range c.heirs(v) {
		path, item := path+"-"+p.lang, tohex([]byte("item"))
		if err := put(ctx, p.handle(), kind, path, []byte("item"), 0); err != nil {
			return nil, err
		}
		first, h := v.handle(), p.handle()
		if _, err := first.do(ctx, "consume", kind, path); err != nil {
			return nil, err
		}
		got, err := first.do(ctx, "take", patience)
		if err := errors.Join(err, cases.Expect("the victim's item", got, item)); err != nil {
			return nil, err
		}
		if _, err := h.do(ctx, "consume", kind, path); err != nil {
			return nil, err
		}
		l := loss{
			what: "item of " + v.lang + " to " + p.lang, waits: h.ask("take", patience), want: item,
			after: func() error {
				_, err := h.do(ctx, "ack")
				return errors.Join(err, c.emptied(ctx, kind, path))
			},
		}
		if p.lang == Curator {
			l.before, l.after = func() error { return c.nudge(ctx, kind, path) }, func() error { return c.takesNudge(ctx, h, kind, path) }
		}
		losses = append(losses, l)
	}
	return losses, nil
}

// nudge puts another item when the lock of a dead consumer has gone: Curator's consumer does not
// watch locks, and only a change makes it look at the items again.
func (c *cast) nudge(ctx context.Context, kind, path string) error {
	if err := c.standing(ctx, path+"/taken", 0); err != nil {
		return err
	}
	return put(ctx, c.peers[0].handle(), kind, path, []byte("nudge"), 1)
}

func (c *cast) takesNudge(ctx context.Context, h *handle, kind, path string) error {
	if _, err := h.do(ctx, "ack"); err != nil {
		return err
	}
	got, err := take(ctx, h, kind, patience)
	return errors.Join(err, cases.Expect("the second item", got, tohex([]byte("nudge"))), c.emptied(ctx, kind, path))
}
