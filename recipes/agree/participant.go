package agree

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Participant takes part in a transaction, as a site or as a coordinator, which has no site. Its
// methods must be called by one goroutine at a time.
type Participant struct {
	*Transaction
	site    string // "" for a coordinator
	task    []byte
	place   *contend.Place // in the line of those present
	initial *contend.Place // of the process that began the transaction; nil for others
	seen    *observations  // at place; nil before the first look
	outcome Decision
}

// Coordinate takes part as a replacement of the coordinator that began the transaction.
func (t *Transaction) Coordinate(ctx context.Context) (*Participant, error) {
	return t.syncAndJoin(ctx, "")
}

// Join takes part as a site, also when a new process continues the work of a site that died. The
// error is recipes.ErrArgument if the transaction does not have the site, or the site has called
// Done.
func (t *Transaction) Join(ctx context.Context, site string) (*Participant, error) {
	if site == "" { // with which join would make a coordinator
		return nil, fmt.Errorf("agree: join %s: %w: the name of the site is empty", t.path, recipes.ErrArgument)
	}
	p, err := t.syncAndJoin(ctx, site)
	if err != nil {
		return nil, err
	}
	switch stat, err := t.client.Exists(ctx, t.votePath(site)); {
	case err != nil:
		return nil, errors.Join(err, p.leave(ctx))
	case stat == nil:
		return nil, errors.Join(fmt.Errorf("agree: join %s as %q: not a site of this transaction, or done with it: %w", t.path, site, recipes.ErrArgument), p.leave(ctx))
	}
	return p, nil
}

// Task returns the task that Begin was given.
func (p *Participant) Task() []byte { return p.task }

// Close ends the participation. The others continue: a site that has not voted counts as dead, and
// a site that has voted can join again to learn the outcome. After the session timeout Close
// returns recipes.ErrOutcomeUnknown and continues in the background.
func (p *Participant) Close() error { return contend.Close(p.client, p.leave) }

func (p *Participant) leave(ctx context.Context) error { return p.place.Leave(ctx) }

// Vote votes for Commit or for Abort, which decides at once. A coordinator can only vote for Abort.
// Vote succeeds if the transaction was decided without this vote: Outcome returns the decision.
// recipes.ErrArgument means that the vote is not valid, or that the site has voted differently,
// perhaps before a crash.
func (p *Participant) Vote(ctx context.Context, d Decision) error {
	set := &zk.SetDataRequest{Path: p.votePath(p.site), Data: []byte(d), Version: 0}
	ops := []any{set, &zk.CheckVersionRequest{Path: p.path, Version: 0}}
	switch {
	case d == Abort && p.site == "":
		_, err := p.decide(ctx, Abort)
		return err
	case d == Commit && p.site != "":
	case d == Abort:
		ops[1] = &zk.SetDataRequest{Path: p.path, Data: []byte(Abort), Version: 0}
	default:
		return fmt.Errorf("agree: vote %q: %w: a site votes %q or %q, a coordinator %q", d, recipes.ErrArgument, Commit, Abort, Abort)
	}
	for {
		_, err := p.client.Multi(ctx, ops...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil: // the versions allow it once only
			continue
		case errors.Is(err, zk.ErrNoNode):
			return p.explainMissing(err)
		case !errors.Is(err, zk.ErrBadVersion):
			return err
		}
		data, stat, err := p.client.Get(ctx, p.votePath(p.site))
		switch {
		// the transaction was decided, or an earlier attempt was applied
		case errors.Is(err, zk.ErrNoNode), err == nil && (stat.Version == 0 || Decision(data) == d):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("agree: vote at %s as %q: %w: the site has voted differently", p.path, p.site, recipes.ErrArgument)
	}
}

// Done ends the participation and reports that the site has carried out the decision, which then
// need not be kept for this site. For a coordinator Done is Close.
func (p *Participant) Done(ctx context.Context) error {
	if p.outcome == Undecided {
		return fmt.Errorf("agree: done with %s as %q: the outcome is not known; call Outcome first", p.path, p.site)
	}
	var err error
	if p.site != "" {
		err = contend.IgnoreMissing(p.client.Idempotent().Delete(ctx, p.votePath(p.site), -1))
	}
	return errors.Join(err, p.leave(ctx))
}

// syncAndJoin is join for a process that did not begin the transaction: its server may not know the
// transaction yet.
func (t *Transaction) syncAndJoin(ctx context.Context, site string) (*Participant, error) {
	if err := t.client.Sync(ctx, t.path); err != nil {
		return nil, err
	}
	return t.join(ctx, site)
}

// join takes a place in line. If the transaction was deleted meanwhile, join may leave containers
// behind, which the server deletes.
func (t *Transaction) join(ctx context.Context, site string) (*Participant, error) {
	if _, _, err := t.readDecision(ctx, false); err != nil {
		return nil, err
	}
	p := &Participant{Transaction: t, site: site}
	if err := p.joinLine(ctx); err != nil {
		return nil, err
	}
	var err error
	if p.task, _, err = t.client.Get(ctx, t.taskPath()); err != nil {
		return nil, errors.Join(t.explainMissing(err), p.leave(ctx))
	}
	return p, nil
}

// joinLine takes a new place in line. After an error p.place is still the previous place, which is
// lost, as its methods report.
func (p *Participant) joinLine(ctx context.Context) error {
	label := "coordinator-"
	if p.site != "" {
		label = siteLabel + p.site + "-"
	}
	place, err := contend.Join(ctx, p.client, p.linePath(), label, []byte(p.site))
	if err == nil {
		p.place = place
	}
	return err
}

// siteLabel precedes the site in the name of its place.
const siteLabel = "site-"
