//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// A round is traffic on the ensemble while faults happen, then a pause in which it becomes whole, and a last look.
type round struct {
	number  int
	seed    uint64
	length  time.Duration
	pace    time.Duration
	cluster *Cluster
	faults  []fault
	rec     *Recorder
	log     hclog.Logger
}

// A roundResult is what a round left to be judged.
type roundResult struct {
	history       []*Record
	began, ended  time.Duration // of the traffic
	faults        map[string]int
	unrecovered   error         // not nil: the ensemble, or a client, did not come back
	longestToHeal time.Duration // from the last heal until all members served
}

const (
	// sessionTimeout is that of clients that should not lose their sessions by being unlucky.
	sessionTimeout = 10 * time.Second
	// afterwards is how long the traffic goes on once all members serve again, so that every client finds back.
	afterwards = 2 * time.Second
	// stuck is how long a client may take to end its last operation on an ensemble that is whole.
	stuck = 30 * time.Second
)

// rand returns a source of decisions for a part of the round.
func (r *round) rand(name string) *rand.Rand {
	h := fnv.New64a()
	// Writing to a hash does not fail.
	_, _ = fmt.Fprintf(h, "%d/%s", r.number, name)
	return rand.New(rand.NewPCG(r.seed, h.Sum64()))
}

func (r *round) root() string { return fmt.Sprintf("/round-%d", r.number) }

// run returns an error when the round could not be held, which says nothing about the ensemble's answers.
func (r *round) run(ctx context.Context) (*roundResult, error) {
	res := &roundResult{}
	serving, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := r.cluster.StartAll(serving); err != nil {
		res.unrecovered = err
		return res, nil
	}
	all := loads()
	workers, err := r.connect(all)
	defer func() { closeAll(workers) }()
	if err == nil {
		err = r.prepare(serving, all, workers)
	}
	if err != nil {
		return nil, err
	}
	res.began = r.rec.Now()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var busy sync.WaitGroup
	for i, l := range all {
		for _, w := range workers[i] {
			busy.Add(1)
			// Ends when stop is called and the ensemble answers; awaited below, and in vain if it does not answer.
			go func() {
				defer busy.Done()
				l.run(working, w)
			}()
		}
	}
	n := &nemesis{cluster: r.cluster, rng: r.rand("nemesis"), faults: r.faults, log: r.log, counts: map[string]int{}}
	res.faults = n.counts
	breaking, cancelBreaking := context.WithTimeout(ctx, r.length)
	err = n.run(breaking)
	cancelBreaking()
	healed := r.rec.Now()
	if err == nil {
		res.unrecovered = n.awaitServing(ctx)
		res.longestToHeal = r.rec.Now() - healed
		err = pause(ctx, afterwards)
	}
	res.ended = r.rec.Now()
	stop()
	if !awaitGroup(&busy, stuck) {
		res.unrecovered = errors.Join(res.unrecovered, fmt.Errorf("jepsenlite: a client got no answer for %v although all members serve", stuck))
	} else if err == nil && res.unrecovered == nil {
		for i, l := range all {
			if l.settle != nil {
				for _, w := range workers[i] {
					l.settle(w)
				}
			}
		}
	}
	closeAll(workers)
	workers = nil
	if err == nil && res.unrecovered == nil {
		res.unrecovered = r.lookAtAll(ctx)
	}
	res.history = r.rec.Take()
	return res, err
}

// lookAtAll reads the round's znodes from every member, and removes them, so that rounds do not become slower.
func (r *round) lookAtAll(ctx context.Context) error {
	var paths []string
	for _, m := range r.cluster.Members {
		var err error
		paths, err = dump(ctx, r.rec, fmt.Sprintf("%s-%d", loadFinal, m.ID), m.Client, m.ID, r.root())
		if err != nil {
			return fmt.Errorf("jepsenlite: read all from member %d: %w", m.ID, err)
		}
	}
	if err := remove(ctx, NewRecorder(), r.cluster.Members[0].Client, paths); err != nil {
		return fmt.Errorf("jepsenlite: remove what the round made: %w", err)
	}
	return nil
}

// connect makes the clients of all loads, spread over the members.
func (r *round) connect(all []load) ([][]*worker, error) {
	var workers [][]*worker
	home := 0
	for _, l := range all {
		var ws []*worker
		for i := range l.workers {
			name := fmt.Sprintf("%s-%d", l.name, i)
			w := &worker{
				rec: r.rec, addresses: r.cluster.Addresses(), home: home, timeout: sessionTimeout,
				root: r.root(), dir: path.Join(r.root(), l.name), rng: r.rand(name), pace: r.pace,
			}
			var err error
			if w.client, err = connect(r.rec, name, w.addresses, w.home, w.timeout); err != nil {
				return append(workers, ws), fmt.Errorf("jepsenlite: %w", err)
			}
			ws = append(ws, w)
			home++
		}
		workers = append(workers, ws)
	}
	return workers, nil
}

// prepare waits until every client has a session and makes the folders of the loads.
func (r *round) prepare(ctx context.Context, all []load, workers [][]*worker) error {
	root := workers[0][0]
	if err := root.await(ctx); err != nil {
		return fmt.Errorf("jepsenlite: no session: %w", err)
	}
	if _, err := root.create(r.root(), "", 0); err != nil {
		return fmt.Errorf("jepsenlite: %s: %w", r.root(), err)
	}
	for i, l := range all {
		for _, w := range workers[i] {
			if err := w.await(ctx); err != nil {
				return fmt.Errorf("jepsenlite: no session: %w", err)
			}
		}
		w := workers[i][0]
		if _, err := w.create(w.dir, "", 0); err != nil {
			return fmt.Errorf("jepsenlite: %s: %w", w.dir, err)
		}
		if l.prepare != nil {
			if err := l.prepare(w); err != nil {
				return fmt.Errorf("jepsenlite: prepare %s: %w", l.name, err)
			}
		}
	}
	// Nobody begins before this client's server has what another one made.
	for i := range all {
		for _, w := range workers[i] {
			if _, err := w.Sync(w.dir); err != nil && !errors.Is(err, zk.ErrConnectionClosed) {
				return fmt.Errorf("jepsenlite: sync: %w", err)
			}
		}
	}
	return nil
}

func closeAll(workers [][]*worker) {
	var closing sync.WaitGroup
	for _, ws := range workers {
		for _, w := range ws {
			closing.Add(1)
			// Ends within a second or so, go-zookeeper's patience with a server that does not answer; awaited below.
			go func() {
				defer closing.Done()
				w.Close()
			}()
		}
	}
	closing.Wait()
}

// awaitGroup reports whether a group was done in time.
func awaitGroup(g *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	// Ends with the group; if that never happens, with the process.
	go func() {
		g.Wait()
		close(done)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
