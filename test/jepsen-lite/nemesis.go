//go:build linux

package jepsenlite

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
)

// recovery is how long an ensemble may take after the last heal until all members serve.
const recovery = 90 * time.Second

// A nemesis repeatedly disturbs and heals the ensemble, on a single goroutine.
type nemesis struct {
	cluster *Cluster
	rec     *Recorder
	rng     *rand.Rand
	faults  []fault
	log     hclog.Logger
	counts  map[string]int
	healed  func()        // called after each fault
	well    time.Duration // since when a majority is well; 0: it may not be
	paused  time.Duration // since when all members are paused by pauseAll; 0: they are not
}

// run injects faults until ctx ends, and leaves everything healed and every process started, though
// not necessarily serving. Between faults is a pause in which the members may or may not recover;
// now and then two faults overlap.
func (n *nemesis) run(ctx context.Context) {
	n.majorityWell(true)
	defer n.majorityWell(false)
	for backoff.Sleep(ctx, n.between(500*time.Millisecond, 3*time.Second)) {
		f := n.pick()
		if f.whole {
			err := must.Try(func() { n.awaitServing(ctx) })
			if ctx.Err() != nil {
				break
			}
			must.Do(err)
		}
		if !f.minority || len(n.cluster.Members) < 3 {
			n.majorityWell(false)
		}
		heal := n.inject(ctx, f)
		if other := n.pick(); !f.whole && !other.whole && n.rng.IntN(4) == 0 {
			backoff.Sleep(ctx, n.between(0, time.Second)) // cut short by the end of the round: then both are healed at once
			n.majorityWell(false)
			heal = both(heal, n.inject(ctx, other))
		}
		backoff.Sleep(ctx, n.between(200*time.Millisecond, f.longest)) // as above
		// Healing is not cut short: a half-healed ensemble would be another fault.
		mend, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
		heal(mend)
		cancel()
		n.majorityWell(true)
		n.log.Info("healed")
		n.healed()
		if f.whole {
			n.awaitServing(context.WithoutCancel(ctx))
		}
	}
	n.startAll(context.WithoutCancel(ctx))
}

// majorityWell notes that a majority is well from now on, or that it may not be any more.
func (n *nemesis) majorityWell(well bool) {
	switch {
	case well && n.well == 0:
		n.well = n.rec.Now()
	case !well && n.well != 0:
		n.rec.Note(KindWell, n.well)
		n.well = 0
	}
}

// endPause notes that no member has run since pauseAll, if a member is about to run again.
func (n *nemesis) endPause() {
	if n.paused != 0 {
		n.rec.Note(KindPause, n.paused)
		n.paused = 0
	}
}

// inject injects a fault, if it is possible, and returns what heals it, never nil.
func (n *nemesis) inject(ctx context.Context, f fault) (heal healing) {
	var what string
	must.Doing("fault "+f.name, func() { what, heal = f.inject(ctx, n) })
	n.log.Info("fault", "kind", f.name, "what", what)
	if heal == nil {
		return noHealing
	}
	n.counts[f.name]++
	return heal
}

// both heals a, and then b, even if a fails.
func both(a, b healing) healing {
	return func(ctx context.Context) {
		defer b(ctx)
		a(ctx)
	}
}

// pick draws a kind of fault.
func (n *nemesis) pick() fault {
	sum := 0
	for _, f := range n.faults {
		sum += f.weight
	}
	p := n.rng.IntN(sum)
	for _, f := range n.faults {
		if p -= f.weight; p < 0 {
			return f
		}
	}
	panic("jepsenlite: no fault has a weight")
}

func (n *nemesis) between(least, most time.Duration) time.Duration {
	return least + time.Duration(n.rng.Int64N(int64(most-least)+1))
}

func (n *nemesis) any() *Member { return n.cluster.Members[n.rng.IntN(len(n.cluster.Members))] }

// leader returns the leader, or any member while there is none.
func (n *nemesis) leader(ctx context.Context) *Member {
	if m := n.cluster.Leader(ctx); m != nil {
		return m
	}
	return n.any()
}

func (n *nemesis) others(m *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(n.cluster.Members), func(o *Member) bool { return o == m })
}

// startAll starts the members that do not run.
func (n *nemesis) startAll(context.Context) {
	for _, m := range n.cluster.Members {
		n.cluster.Start(m)
	}
}

func (n *nemesis) awaitServing(ctx context.Context) {
	n.startAll(ctx) // a member may have ended by itself, for its disk
	n.cluster.AwaitServing(ctx)
}
