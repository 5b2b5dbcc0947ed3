//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Traffic is the clients of all loads at work.
type traffic struct {
	loads   []load
	workers [][]*worker // by load
	stop    context.CancelFunc
	busy    sync.WaitGroup
}

// start connects all clients, prepares the loads while ready lasts, and runs them until ctx ends or
// end is called. The caller must call end.
func (r *round) start(ctx, ready context.Context) (*traffic, error) {
	t := &traffic{loads: r.loads}
	err := r.connect(t)
	if err == nil {
		err = r.prepare(ready, t)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	t.stop = stop
	for i, l := range t.loads {
		for _, w := range t.workers[i] {
			t.busy.Add(1)
			// Ends when end is called and the ensemble answers; end awaits it, for a limited time.
			go func() {
				defer t.busy.Done()
				l.run(working, w)
			}()
		}
	}
	return t, nil
}

// goHome sends some clients back to their first member: otherwise the last faults decide where all
// of them are.
func (t *traffic) goHome(rng *rand.Rand) {
	for _, ws := range t.workers {
		for _, w := range ws {
			if rng.IntN(2) == 0 {
				w.goHome()
			}
		}
	}
}

// end stops the clients, runs the final reads if settle is true, and closes the clients. An error
// means that a client got no reply for long.
func (t *traffic) end(settle bool) error {
	t.stop()
	defer t.close()
	if !awaitGroup(&t.busy, stuck) {
		return fmt.Errorf("jepsenlite: a client got no answer for %v although all members serve", stuck)
	}
	for i, l := range t.loads {
		if settle && l.settle != nil {
			for _, w := range t.workers[i] {
				l.settle(w)
			}
		}
	}
	return nil
}

// connect creates the clients of all loads, spread over the members.
func (r *round) connect(t *traffic) error {
	home := 0
	for i, l := range t.loads {
		t.workers = append(t.workers, nil)
		for n := range l.workers {
			name := fmt.Sprintf("%s-%d", l.name, n)
			w := &worker{
				rec: r.rec, addresses: r.cluster.Addresses(), home: home, timeout: sessionTimeout,
				root: r.root(), dir: path.Join(r.root(), l.name), rng: r.rand(name), pace: r.pace,
			}
			var err error
			if w.client, err = connect(r.rec, name, w.addresses, w.home, w.timeout); err != nil {
				return fmt.Errorf("jepsenlite: %w", err)
			}
			t.workers[i] = append(t.workers[i], w)
			home++
		}
	}
	return nil
}

// prepare waits until every client has a session, and creates the loads' parents.
func (r *round) prepare(ctx context.Context, t *traffic) error {
	root := t.workers[0][0]
	if err := root.await(ctx); err != nil {
		return fmt.Errorf("jepsenlite: no session: %w", err)
	}
	if _, err := root.create(r.root(), "", 0); err != nil {
		return fmt.Errorf("jepsenlite: %s: %w", r.root(), err)
	}
	for i, l := range t.loads {
		for _, w := range t.workers[i] {
			if err := w.await(ctx); err != nil {
				return fmt.Errorf("jepsenlite: no session: %w", err)
			}
		}
		w := t.workers[i][0]
		if _, err := w.create(w.dir, "", 0); err != nil {
			return fmt.Errorf("jepsenlite: %s: %w", w.dir, err)
		}
		if l.prepare != nil {
			if err := l.prepare(w); err != nil {
				return fmt.Errorf("jepsenlite: prepare %s: %w", l.name, err)
			}
		}
	}
	// No client begins before its server has what another one created.
	for i := range t.loads {
		for _, w := range t.workers[i] {
			if _, err := w.Sync(w.dir); err != nil && !errors.Is(err, zk.ErrConnectionClosed) {
				return fmt.Errorf("jepsenlite: sync: %w", err)
			}
		}
	}
	return nil
}

func (t *traffic) close() {
	var closing sync.WaitGroup
	for _, ws := range t.workers {
		for _, w := range ws {
			closing.Add(1)
			// Ends within about a second, go-zookeeper's patience with a silent server; awaited
			// below.
			go func() {
				defer closing.Done()
				w.Close()
			}()
		}
	}
	closing.Wait()
}

// awaitGroup reports whether a group ended in time.
func awaitGroup(g *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	// Ends with the group; if that never ends, with the process.
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
