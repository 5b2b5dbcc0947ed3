//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
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
func (n *nemesis) run(ctx context.Context) error {
	n.majorityWell(true)
	defer n.majorityWell(false)
	for pause(ctx, n.between(500*time.Millisecond, 3*time.Second)) == nil {
		f := n.pick()
		if f.whole {
			if err := n.awaitServing(ctx); err != nil {
				if ctx.Err() != nil {
					break
				}
				return err
			}
		}
		if !f.minority || len(n.cluster.Members) < 3 {
			n.majorityWell(false)
		}
		heal, err := n.inject(ctx, f)
		if other := n.pick(); err == nil && !f.whole && !other.whole && n.rng.IntN(4) == 0 {
			_ = pause(ctx, n.between(0, time.Second)) // cut short by the end of the round: then both are healed at once
			n.majorityWell(false)
			var healOther func(context.Context) error
			healOther, err = n.inject(ctx, other)
			heal = both(heal, healOther)
		}
		if err == nil {
			_ = pause(ctx, n.between(200*time.Millisecond, f.longest)) // as above
		}
		// Healing is not cut short: a half-healed ensemble would be another fault.
		mend, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
		err = errors.Join(err, heal(mend))
		cancel()
		if err != nil {
			return err
		}
		n.majorityWell(true)
		n.log.Info("healed")
		n.healed()
		if f.whole {
			if err := n.awaitServing(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
	return n.startAll(context.WithoutCancel(ctx))
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

// errImpossible is the error of a fault that is not possible now.
var errImpossible = errors.New("not possible now")

// inject injects a fault, if it is possible, and returns the function that heals it, never nil.
func (n *nemesis) inject(ctx context.Context, f fault) (heal func(context.Context) error, err error) {
	what, heal, err := f.inject(ctx, n)
	if heal == nil {
		heal = func(context.Context) error { return nil }
	}
	n.log.Info("fault", "kind", f.name, "what", what)
	switch {
	case errors.Is(err, errImpossible):
		return heal, nil
	case err != nil:
		err = fmt.Errorf("jepsenlite: fault %s: %w", f.name, err)
	}
	n.counts[f.name]++
	return heal, err
}

func both(a, b func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(a(ctx), b(ctx)) }
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
	var others []*Member
	for _, o := range n.cluster.Members {
		if o != m {
			others = append(others, o)
		}
	}
	return others
}

// startAll starts the members that do not run.
func (n *nemesis) startAll(context.Context) error {
	for _, m := range n.cluster.Members {
		if err := n.cluster.Start(m); err != nil {
			return err
		}
	}
	return nil
}

func (n *nemesis) awaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := n.startAll(ctx); err != nil { // a member may have ended by itself, for its disk
		return err
	}
	return n.cluster.AwaitServing(ctx)
}
