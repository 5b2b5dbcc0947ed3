package agree

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// await waits for the decision, and makes it when it is the part's turn. first is the place of who has begun the transaction.
func (p *part) await(ctx context.Context, first *contend.Place) (Decision, error) {
	for {
		d, err := p.awaitInLine(ctx, first)
		switch {
		case err == nil:
			p.outcome = d
			return d, nil
		case ctx.Err() != nil || !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld):
			return Undecided, err
		}
		if err := p.stand(ctx); err != nil && !errors.Is(err, recipes.ErrSessionLost) {
			return Undecided, err
		}
	}
}

// awaitInLine is await for as long as the place is there.
func (p *part) awaitInLine(ctx context.Context, first *contend.Place) (Decision, error) {
	in, cancel := p.place.Session().Within(ctx)
	defer cancel()
	if p.tally == nil || p.tally.place != p.place {
		p.tally = &tally{place: p.place, patient: p.place == first, seen: make(map[string]bool), committed: make(map[string]bool)}
	}
	for {
		d, decided, err := p.read(in, true)
		if err != nil || d != Undecided {
			return d, err
		}
		before := ""
		turn, err := p.place.Try(in, func(names []string, own int) string {
			before = contend.Exclusive(names, own)
			return before
		})
		var one, two <-chan zk.Event
		switch {
		case err != nil:
			return Undecided, err
		case turn == nil:
			_, _, one, err = p.client.GetW(in, znodepath.Join(p.here(), before))
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
		default:
			d, one, two, err = p.count(in, p.tally)
		}
		if err != nil || d != Undecided {
			return d, err
		}
		select {
		case <-decided:
		case <-one:
		case <-two:
		case <-in.Done():
			return Undecided, &recipes.Error{Op: "await the decision of", Path: p.path, Err: context.Cause(in)}
		}
	}
}

// tally is what who decides has seen so far, also in calls whose ctx has ended.
type tally struct {
	place     *contend.Place
	patient   bool            // sites that were not seen yet are waited for
	seen      map[string]bool // the labels of sites that stood in line once
	committed map[string]bool // sites that have voted for it
}

// count decides if that can be done. Else it returns channels that say when to count again: one site has voted, or who is there has changed.
func (p *part) count(ctx context.Context, t *tally) (d Decision, voted, changed <-chan zk.Event, err error) {
	// First who is there, and then who has voted: a site that votes and goes meanwhile has voted.
	names, _, changed, err := p.client.ChildrenW(ctx, p.here())
	if err != nil {
		return Undecided, nil, nil, p.none(err)
	}
	here := make(map[string]bool)
	for _, name := range names {
		label := contend.Label(name)
		here[label], t.seen[label] = true, true
	}
	sites, _, err := p.client.Children(ctx, p.sites())
	if err != nil {
		return Undecided, nil, nil, p.none(err)
	}
	slices.Sort(sites)
	for _, site := range sites {
		label := siteLabel + site
		if t.committed[site] || voted != nil && here[label] {
			continue // it has voted, or is waited for when its turn comes
		}
		data, fires, err := p.readVote(ctx, site, voted == nil)
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return Undecided, nil, nil, err
		case err != nil || Decision(data) == Commit: // without the znode, it knows the decision already
			t.committed[site] = true
		case Decision(data) == Abort, !here[label] && (t.seen[label] || !t.patient):
			d, err := p.decide(ctx, Abort)
			return d, nil, nil, err
		case voted == nil:
			voted = fires
		}
	}
	if voted != nil {
		return Undecided, voted, changed, nil
	}
	d, err = p.decide(ctx, Commit)
	return d, nil, nil, err
}

// readVote returns the data of a site's znode, and with watch a channel that says when to look again.
func (p *part) readVote(ctx context.Context, site string, watch bool) (data []byte, fires <-chan zk.Event, err error) {
	if watch {
		data, _, fires, err = p.client.GetW(ctx, p.vote(site))
	} else {
		data, _, err = p.client.Get(ctx, p.vote(site))
	}
	return data, fires, err
}

// none is what it means if a znode of a transaction is missing.
func (t *Transaction) none(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("agree: %s: %w", t.path, ErrNone)
	}
	return err
}
