package agree

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/author"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Outcome waits for the votes and the decision: Commit when all sites have voted Commit, and Abort
// when a site has voted Abort or is gone without a vote. The coordinator decides; if that is gone,
// the first of the sites.
//
// The process that began the transaction waits for sites that have not joined yet, and for a site
// that came and went unseen between two calls of Outcome. Others abort if a site is absent.
//
// When ctx ends, Outcome decides nothing. Another call remembers the sites that the previous calls
// have seen.
func (p *Participant) Outcome(ctx context.Context) (Decision, error) {
	for {
		d, err := p.awaitAtPlace(ctx)
		switch {
		case err == nil:
			p.outcome = d
			return d, nil
		case ctx.Err() != nil || !contend.IsLost(err):
			return Undecided, err
		}
		if err := p.joinLine(ctx); err != nil && !errors.Is(err, recipes.ErrSessionLost) {
			return Undecided, err
		}
	}
}

// awaitAtPlace is Outcome as long as the place in line exists.
func (p *Participant) awaitAtPlace(ctx context.Context) (Decision, error) {
	in, cancel := p.place.Session().Within(ctx)
	defer cancel()
	if p.seen == nil || p.seen.place != p.place {
		p.seen = &observations{place: p.place, waitForAbsent: p.place == p.initial, present: make(map[string]bool), committed: make(map[string]bool)}
	}
	for {
		d, decided, err := p.readDecision(in, true)
		if err != nil || d != Undecided {
			return d, err
		}
		before := ""
		turn, err := p.place.Try(in, func(names []string, own int) string {
			before = contend.Exclusive(names, own)
			return before
		})
		var changed, voted <-chan zk.Event
		switch {
		case err != nil:
			return Undecided, err
		case turn == nil:
			_, _, changed, err = p.client.GetW(in, znodepath.Join(p.linePath(), before))
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
		default:
			author.EndHold(turn) // otherwise a goroutine per look would watch the place
			d, voted, changed, err = p.tryDecide(in, p.seen)
		}
		if err != nil || d != Undecided {
			return d, err
		}
		select {
		case <-decided:
		case <-voted:
		case <-changed:
		case <-in.Done():
			return Undecided, &recipes.Error{Op: "await the decision of", Path: p.path, Err: context.Cause(in)}
		}
	}
}

// observations holds the sites and votes that the first in line has seen at its place, also in
// calls whose ctx has ended.
type observations struct {
	place         *contend.Place
	waitForAbsent bool            // wait for sites that were never present
	present       map[string]bool // labels of the sites that have been in line
	committed     map[string]bool // sites that have voted for the commit
}

// tryDecide decides if that is possible. Otherwise it returns channels that say when to try again:
// when a site may have voted, and when participants may have come or gone.
func (p *Participant) tryDecide(ctx context.Context, seen *observations) (d Decision, voted, changed <-chan zk.Event, err error) {
	// Read the line before the votes: a site that votes and leaves in between has voted.
	names, _, changed, err := p.client.ChildrenW(ctx, p.linePath())
	if err != nil {
		return Undecided, nil, nil, p.explainMissing(err)
	}
	present := make(map[string]bool)
	for _, name := range names {
		label := contend.Label(name)
		present[label], seen.present[label] = true, true
	}
	sites, _, err := p.client.Children(ctx, p.sitesPath())
	if err != nil {
		return Undecided, nil, nil, p.explainMissing(err)
	}
	slices.Sort(sites)
	for _, site := range sites {
		label := siteLabel + site
		if seen.committed[site] || voted != nil && present[label] {
			continue // voted, or its vote is watched later
		}
		data, fires, err := getMaybeWatch(ctx, p.client, p.votePath(site), voted == nil)
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return Undecided, nil, nil, err
		case err != nil || Decision(data) == Commit: // without its znode, the site knows the decision
			seen.committed[site] = true
		case Decision(data) == Abort, !present[label] && (seen.present[label] || !seen.waitForAbsent):
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
