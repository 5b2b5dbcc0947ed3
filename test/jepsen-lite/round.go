//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A round is traffic on the ensemble while faults happen, then recovery, then final reads.
type round struct {
	number  int
	seed    uint64
	length  time.Duration
	pace    time.Duration
	cluster *Cluster
	loads   []load
	faults  []fault
	rec     *Recorder
	log     hclog.Logger
}

// A roundResult holds the data that is judged after a round.
type roundResult struct {
	history       []*Record
	began, ended  time.Duration // of the traffic
	faults        map[string]int
	unrecovered   error         // not nil: the ensemble, or a client, did not recover
	longestToHeal time.Duration // from the last heal until all members served
}

// afterwards is how long the traffic goes on once all members serve again, so that every client
// recovers.
const afterwards = 2 * time.Second

// rand returns a source of decisions for a part of the round.
func (r *round) rand(name string) *rand.Rand {
	h := fnv.New64a()
	// Writing to a hash does not fail.
	_, _ = fmt.Fprintf(h, "%d/%s", r.number, name)
	return rand.New(rand.NewPCG(r.seed, h.Sum64()))
}

func (r *round) root() string { return fmt.Sprintf("/round-%d", r.number) }

// run returns an error if the round could not run, which says nothing about the ensemble.
func (r *round) run(ctx context.Context) (*roundResult, error) {
	res := &roundResult{}
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := r.cluster.StartAll(serving); err != nil {
		res.unrecovered = err
		return res, nil
	}
	traffic, err := StartTraffic(ctx, serving, r.traffic())
	if err != nil {
		return nil, err
	}
	res.began = r.rec.Now()
	n := &nemesis{cluster: r.cluster, rec: r.rec, rng: r.rand("nemesis"), faults: r.faults, log: r.log, counts: map[string]int{}}
	n.healed = func() { traffic.GoHome(n.rng) }
	res.faults = n.counts
	breaking, cancelBreaking := context.WithTimeout(ctx, r.length)
	err = n.run(breaking)
	cancelBreaking()
	if errors.Is(err, errUnrecovered) && ctx.Err() == nil {
		res.unrecovered, err = err, nil
	}
	healed := r.rec.Now()
	if err == nil && res.unrecovered == nil {
		res.unrecovered = n.awaitServing(ctx)
		res.longestToHeal = r.rec.Now() - healed
		err = pause(ctx, afterwards)
	}
	res.ended = r.rec.Now()
	res.unrecovered = errors.Join(res.unrecovered, traffic.End(err == nil && res.unrecovered == nil))
	if err == nil && res.unrecovered == nil {
		res.unrecovered = r.lookAtAll(traffic)
	}
	res.history = r.rec.Take()
	return res, err
}

// traffic returns the configuration of the round's clients.
func (r *round) traffic() TrafficConfig {
	return TrafficConfig{
		Recorder: r.rec, Addresses: r.cluster.Addresses(), Root: r.root(), Timeout: sessionTimeout, Short: shortTimeout, Pace: r.pace, Rand: r.rand, loads: r.loads,
	}
}

// lookAtAll reads the round's znodes from every member and removes them, so that rounds do not
// become slower.
func (r *round) lookAtAll(t *Traffic) error {
	paths, err := t.Dump()
	if err != nil {
		return err
	}
	if err := remove(NewRecorder(), r.cluster.Members[0].Client, paths); err != nil {
		return fmt.Errorf("jepsenlite: remove what the round made: %w", err)
	}
	return nil
}
