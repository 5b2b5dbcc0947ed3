package agree

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Participant is a site that takes part. Its methods are for one goroutine at a time.
type Participant struct{ *part }

// Coordinator takes part without a site. Its methods are for one goroutine at a time.
type Coordinator struct {
	*part
	first *contend.Place // of who has begun it; nil in its place
}

// part is one who takes part, and stands in the line of those.
type part struct {
	*Transaction
	site    string // "" for a coordinator
	task    []byte
	place   *contend.Place
	tally   *tally // what it has seen at its place; nil before it has looked
	outcome Decision
}

// Join takes part as a site, also once more, by whoever goes on with its work after it died. ErrNoSite: it is none, or has called Done.
func (t *Transaction) Join(ctx context.Context, site string) (*Participant, error) {
	p, err := t.join(ctx, site)
	if err != nil {
		return nil, err
	}
	switch stat, err := t.client.Exists(ctx, t.vote(site)); {
	case err != nil:
		return nil, errors.Join(err, p.Leave(ctx))
	case stat == nil:
		return nil, errors.Join(fmt.Errorf("agree: join %s as %q: %w", t.path, site, ErrNoSite), p.Leave(ctx))
	}
	return &Participant{p}, nil
}

// Task is what it is about.
func (p *part) Task() []byte { return p.task }

// Leave takes part no longer. The rest go on without: a site that has not voted is taken for dead, and one that has can join again to learn
// the outcome.
func (p *part) Leave(ctx context.Context) error { return p.place.Leave(ctx) }

// Vote votes for committing, or for aborting, which decides at once. What was decided already without the vote is no error: Outcome says
// it. ErrVoted: the site has voted otherwise, maybe before it died.
func (p *Participant) Vote(ctx context.Context, d Decision) error {
	set := &zk.SetDataRequest{Path: p.vote(p.site), Data: []byte(d), Version: 0}
	ops := []any{set, &zk.CheckVersionRequest{Path: p.path, Version: 0}}
	switch d {
	case Commit:
	case Abort:
		ops[1] = &zk.SetDataRequest{Path: p.path, Data: []byte(Abort), Version: 0}
	default:
		return fmt.Errorf("agree: vote %q: neither commit nor abort", d)
	}
	for {
		_, err := p.client.Multi(ctx, ops...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil: // it can't be done twice
			continue
		case errors.Is(err, zk.ErrNoNode):
			return fmt.Errorf("agree: vote at %s as %q: %w", p.path, p.site, ErrNone)
		case !errors.Is(err, zk.ErrBadVersion):
			return err
		}
		data, stat, err := p.client.Get(ctx, p.vote(p.site))
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && (stat.Version == 0 || Decision(data) == d): // it is decided; or that was this vote
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("agree: vote at %s as %q: %w", p.path, p.site, ErrVoted)
	}
}

// Outcome waits for the decision. If all who stood before it in line are gone, the site decides.
func (p *Participant) Outcome(ctx context.Context) (Decision, error) { return p.await(ctx, nil) }

// Done says that the site knows the decision, and has done what it must, so that it needs not be kept; and takes part no longer.
func (p *Participant) Done(ctx context.Context) error {
	if p.outcome == Undecided {
		return fmt.Errorf("agree: done with %s as %q: the outcome is not known", p.path, p.site)
	}
	err := p.client.Delete(ctx, p.vote(p.site), -1)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return errors.Join(err, p.Leave(ctx))
}

// Decide waits for the votes and decides: it commits when all sites have voted so, and aborts when one has voted against it, or is gone without a
// vote. Who has begun the transaction waits for sites that have not come yet, as far as it has seen: those that came and went while it was not in
// Decide are waited for. Who goes on in its place aborts if one is not there. When ctx ends, nothing is decided by it; see Abort and Leave. It can be
// called again, and knows then what it has seen before.
func (c *Coordinator) Decide(ctx context.Context) (Decision, error) { return c.await(ctx, c.first) }

// Abort aborts the transaction, if it is not decided, and returns what was decided.
func (c *Coordinator) Abort(ctx context.Context) (Decision, error) { return c.decide(ctx, Abort) }

// join takes a place in line. That may leave a trace where there is no transaction any more: containers, which go by themselves.
func (t *Transaction) join(ctx context.Context, site string) (*part, error) {
	if _, _, err := t.read(ctx, false); err != nil {
		return nil, err
	}
	p := &part{Transaction: t, site: site}
	if err := p.stand(ctx); err != nil {
		return nil, err
	}
	var err error
	if p.task, _, err = t.client.Get(ctx, t.task()); err != nil {
		if errors.Is(err, zk.ErrNoNode) {
			err = fmt.Errorf("agree: join %s: %w", t.path, ErrNone)
		}
		return nil, errors.Join(err, p.Leave(ctx))
	}
	return p, nil
}

// stand takes a place in line. If it fails, the place before it stays, though it is lost: who leaves it, or waits in it, finds that out.
func (p *part) stand(ctx context.Context) error {
	label := "coordinator-"
	if p.site != "" {
		label = siteLabel + p.site + "-"
	}
	place, err := contend.Join(ctx, p.client, p.here(), label, []byte(p.site))
	if err == nil {
		p.place = place
	}
	return err
}

// siteLabel comes before the site in the name of its place.
const siteLabel = "site-"
