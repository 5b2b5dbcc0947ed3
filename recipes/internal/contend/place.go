// Package contend is how recipes wait for their turn: each contender has an ephemeral sequential znode in a directory, and the order of these is
// the order in which they get what they wait for. Curator and kazoo stand in the same lines: only the ten digits at the end
// of a name count.
//
// Invariants:
//   - L1 who is told that it is its turn has seen, in one state of the directory, its own znode and none that it must wait for;
//   - L2 the token of a turn is greater than that of each earlier turn that had to end before it;
//   - L3 who waits watches one znode, and the end of one turn wakes those only whose rule names it;
//   - L4 who gave up, or whose session is over, leaves no znode behind.
package contend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Rule says whose going a contender waits for.
//
//	names   the children of the directory that have a sequence number, in order; not to be changed
//	own     the index of the contender's own
//	before  the name of the znode whose going is to be waited for; "" means that it is its turn
//
// A rule must only look at names before own: what comes later never matters.
type Rule func(names []string, own int) (before string)

// Exclusive is the rule of a mutex: one at a time.
func Exclusive(names []string, own int) string {
	if own == 0 {
		return ""
	}
	return names[own-1]
}

// Place is a place in line. Its methods are for one goroutine at a time.
type Place struct {
	client  *recipes.Client
	session *recipes.Session
	dir     string
	path    string
}

// Join takes the last place in the line of dir, with a znode "_c_<guid>-<name><number>" that has data. Who looks from outside sees
// data. dir and what is above it are made if need be. When it fails, nothing is left behind.
func Join(ctx context.Context, c *recipes.Client, dir, name string, data []byte) (*Place, error) {
	s, err := c.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	path, err := c.Create(in, znodepath.Join(dir, name), data, recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true, Parents: true})
	if err != nil {
		return nil, err
	}
	return &Place{client: c, session: s, dir: dir, path: path}, nil
}

// Path is that of the place's znode.
func (p *Place) Path() string { return p.path }

// Name is the last part of Path.
func (p *Place) Name() string { return p.path[strings.LastIndexByte(p.path, '/')+1:] }

// Session is the one to which the place belongs.
func (p *Place) Session() *recipes.Session { return p.session }

// Await waits until it is the contender's turn. When it fails, the place is left.
//
// errors.Is(err, recipes.ErrSessionLost) or recipes.ErrNotHeld: the place is gone, and ctx did not end; another may be taken.
func (p *Place) Await(ctx context.Context, rule Rule) (*recipes.Hold, error) {
	in, cancel := p.session.Within(ctx)
	defer cancel()
	for {
		held, before, err := p.check(in, rule)
		if held != nil {
			return held, nil
		}
		if err == nil {
			err = p.awaitGone(in, before)
		}
		if err != nil {
			return nil, p.giveUp(ctx, err)
		}
	}
}

// Try looks whether it is the contender's turn, and returns nil if not. The place is kept, but when it fails.
func (p *Place) Try(ctx context.Context, rule Rule) (*recipes.Hold, error) {
	in, cancel := p.session.Within(ctx)
	defer cancel()
	held, _, err := p.check(in, rule)
	if err != nil {
		return nil, p.giveUp(ctx, err)
	}
	return held, nil
}

// Leave gives the place up. If that can't be done before ctx ends, it goes on in the background; see recipes.Client.DeleteGuaranteed.
func (p *Place) Leave(ctx context.Context) error {
	if p.session.Context().Err() != nil {
		return nil // it goes with its session, before the Client has another
	}
	return p.client.DeleteGuaranteed(ctx, p.path)
}

// look asks for the line, once. The place is held if it is its turn; else somebody before it is named.
func (p *Place) check(ctx context.Context, rule Rule) (*recipes.Hold, string, error) {
	children, stat, err := p.client.Children(ctx, p.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) { // without the directory there is no place either
		return nil, "", err
	}
	names := recipes.Sequential(children)
	own := slices.Index(names, p.Name())
	if own < 0 {
		return nil, "", &recipes.Error{Op: "wait in line", Path: p.path, Err: recipes.ErrNotHeld}
	}
	before := rule(names, own)
	if before != "" {
		return nil, before, nil
	}
	// Those before this one that had to go are gone from this state, and their going changed Pzxid: so it is greater than what they saw.
	return p.client.Hold(p.session, p.path, stat.Pzxid), "", nil
}

// awaitGone waits until something happens to the znode with that name. It watches the data and not the existence: where there is no znode
// any more, that leaves no watch behind.
func (p *Place) awaitGone(ctx context.Context, name string) error {
	_, _, fires, err := p.client.GetW(ctx, znodepath.Join(p.dir, name))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	select {
	case <-fires:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("recipes: wait in line %s: %w", p.path, ContextError(ctx))
	}
}

// giveUp leaves the place because of err.
func (p *Place) giveUp(ctx context.Context, err error) error {
	if left := p.Leave(ctx); left != nil && !errors.Is(left, recipes.ErrOutcomeUnknown) {
		return errors.Join(err, left)
	}
	return err
}

// EndOf returns an error that is both, what ended ctx and why.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
