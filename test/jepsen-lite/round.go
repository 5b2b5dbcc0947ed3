//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// A round is traffic on the ensemble while faults happen, then recovery, then final reads.
type round struct {
	Options
	number  int
	cluster *Cluster
	faults  []fault
	rec     *Recorder
}

// afterwards is how long traffic goes on once all members serve, so that every client recovers.
const afterwards = 2 * time.Second

// rand returns a source of decisions for a part of the round.
func (r *round) rand(name string) *rand.Rand {
	h := fnv.New64a()
	// Writing to a hash does not fail.
	_, _ = fmt.Fprintf(h, "%d/%s", r.number, name)
	return rand.New(rand.NewPCG(r.Seed, h.Sum64()))
}

func (r *round) root() string { return fmt.Sprintf("/round-%d", r.number) }

// underTraffic lets clients work while work runs, and reads everything in the end. An error means
// that the round could not run, which says nothing about the ensemble. The result is never nil.
func (r *round) underTraffic(ctx context.Context, work func(*Traffic, *roundResult)) (*roundResult, error) {
	res := &roundResult{faults: map[string]int{}}
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if res.unrecovered = must.Try(func() { r.cluster.StartAll(serving) }); res.unrecovered != nil {
		return res, nil
	}
	traffic, err := StartTraffic(ctx, serving, r.traffic())
	if err != nil {
		return res, err
	}
	res.began = r.rec.Now()
	err = must.Try(func() { work(traffic, res) })
	res.ended = r.rec.Now()
	settle := err == nil && res.unrecovered == nil
	res.unrecovered = errors.Join(res.unrecovered, traffic.End(settle))
	if err == nil && res.unrecovered == nil {
		res.unrecovered = must.Try(func() { r.lookAtAll(traffic) })
	}
	res.history = r.rec.Take()
	return res, err
}

// run lets faults happen, and the ensemble recover.
func (r *round) run(ctx context.Context) (*roundResult, error) {
	return r.underTraffic(ctx, func(traffic *Traffic, res *roundResult) {
		n := &nemesis{cluster: r.cluster, rec: r.rec, rng: r.rand("nemesis"), faults: r.faults, log: r.Logger, counts: res.faults}
		n.healed = func() { traffic.GoHome(n.rng) }
		breaking, cancelBreaking := context.WithTimeout(ctx, r.Round)
		err := must.Try(func() { n.run(breaking) })
		cancelBreaking()
		if errors.Is(err, errUnrecovered) && ctx.Err() == nil {
			res.unrecovered = err
			return
		}
		must.Do(err)
		healed := r.rec.Now()
		res.unrecovered = must.Try(func() { n.awaitServing(ctx) })
		res.longestToHeal = r.rec.Now() - healed
		must.Sleep(ctx, afterwards)
	})
}

// traffic returns the configuration of the round's clients.
func (r *round) traffic() TrafficConfig {
	return TrafficConfig{
		Recorder: r.rec, Addresses: r.cluster.Addresses(), Root: r.root(), Timeout: sessionTimeout, Short: shortTimeout, Pace: r.Pace, Rand: r.rand,
	}
}

// lookAtAll reads the round's znodes from every member and removes them, which keeps rounds fast.
func (r *round) lookAtAll(t *Traffic) {
	paths := must.Get(t.Dump())
	must.Doing("remove what the round made", func() { remove(NewRecorder(), r.cluster.Members[0].Client, paths) })
}
