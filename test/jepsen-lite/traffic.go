package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// TrafficConfig describes the clients of an ensemble.
type TrafficConfig struct {
	Recorder  *Recorder
	Addresses []string      // of the members, in the order of their ids
	Root      string        // path of a znode, which is created, for all that the loads make
	Timeout   time.Duration // of sessions
	Short     time.Duration // of sessions that are to expire: up to twice as long
	Pace      time.Duration // mean time between two operations of a client
	// Rand returns the source of decisions of a client.
	Rand func(client string) *rand.Rand
	// Rest returns how long a client rests, with its session alive, before its next operation. rng
	// is the client's own. nil: no client ever rests.
	Rest func(rng *rand.Rand) time.Duration
}

// Traffic is the clients of all loads at work.
type Traffic struct {
	TrafficConfig
	loads   []load
	workers [][]*worker // by load
	stop    context.CancelFunc
	busy    sync.WaitGroup
}

// stuck is how long a client may take to end its last operation on a healed ensemble.
const stuck = 30 * time.Second

// StartTraffic connects all clients, prepares the loads while ready lasts, and runs them until ctx
// ends or End is called. The caller must call End.
func StartTraffic(ctx, ready context.Context, cfg TrafficConfig) (*Traffic, error) {
	t := &Traffic{TrafficConfig: cfg, loads: loads()}
	err := must.Try(func() {
		t.connect()
		t.prepare(ready)
	})
	if err != nil {
		t.close()
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	t.stop = stop
	for i, l := range t.loads {
		for _, w := range t.workers[i] {
			// Ends when End is called and the ensemble answers; End awaits it, for a limited time.
			t.busy.Go(func() { l.run(working, w) })
		}
	}
	return t, nil
}

// GoHome sends some clients back to their first member: the last faults moved all of them.
func (t *Traffic) GoHome(rng *rand.Rand) {
	for _, w := range slices.Concat(t.workers...) {
		if rng.IntN(2) == 0 {
			w.goHome()
		}
	}
}

// End stops the clients, runs the final reads if settle is true, and closes the clients. An error
// means that a client got no reply for long.
func (t *Traffic) End(settle bool) error {
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
func (t *Traffic) connect() {
	home := 0
	for i, l := range t.loads {
		t.workers = append(t.workers, nil)
		for n := range l.workers {
			name := fmt.Sprintf("%s-%d", l.name, n)
			w := &worker{TrafficConfig: &t.TrafficConfig, home: home, dir: path.Join(t.Root, l.name), rng: t.Rand(name)}
			w.client = must.Get(connect(t.Recorder, name, t.Addresses, home, t.Timeout))
			t.workers[i] = append(t.workers[i], w)
			home++
		}
	}
}

// prepare waits until every client has a session, and creates the loads' parents.
func (t *Traffic) prepare(ctx context.Context) {
	session := func(w *worker) { must.Doing("no session", func() { must.Do(w.await(ctx)) }) }
	root := t.workers[0][0]
	session(root)
	must.Get(root.create(t.Root, "", 0))
	for i, l := range t.loads {
		for _, w := range t.workers[i] {
			session(w)
		}
		w := t.workers[i][0]
		must.Doing("prepare "+l.name, func() {
			must.Get(w.create(w.dir, "", 0))
			if l.prepare != nil {
				l.prepare(w)
			}
		})
	}
	// No client begins before its server has the znodes that others created.
	for _, w := range slices.Concat(t.workers...) {
		if _, err := w.Sync(w.dir); !errors.Is(err, zk.ErrConnectionClosed) {
			must.Do(err)
		}
	}
}

func (t *Traffic) close() {
	var closing sync.WaitGroup
	for _, w := range slices.Concat(t.workers...) {
		// Ends within about a second, go-zookeeper's patience with a silent server; awaited below.
		closing.Go(func() { w.Close() })
	}
	closing.Wait()
}

func awaitGroup(g *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	// Ends with the group; if that never ends, with the process.
	go func() {
		g.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// Dump reads the traffic's znodes from every member, and returns the paths, parents first.
func (t *Traffic) Dump() (paths []string, err error) {
	err = must.Try(func() {
		for i, address := range t.Addresses {
			must.Doing(fmt.Sprintf("read all from member %d", i+1), func() {
				paths = dump(t.Recorder, fmt.Sprintf("%s-%d", loadFinal, i+1), address, i+1, t.Root)
			})
		}
	})
	return paths, err
}
