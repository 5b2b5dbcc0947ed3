//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/test/compat/server"
)

// waited is the output of a peer.
type waited struct {
	Served, Lost, Reconnects int // waiters; sessions; connections
	Seconds                  float64
}

// benchWaiters lets thousands wait with one client, and so with one session: goroutines, and
// threads of the other libraries. Each run has a server of its own and ends after three minutes. It
// fails if our recipes lost a session, or not all of their waiters were served.
func benchWaiters(ctx context.Context, s *settings) {
	var list []reading
	for _, k := range s.servers {
		for _, peer := range recipePeers(ctx, "waiters-peer", "Waiters.java", "waiters.py") {
			for _, kind := range []string{"lock", "semaphore", "election"} {
				row := peer.name + ", " + kind
				if !strings.HasPrefix(row, s.rows) {
					continue
				}
				s.out.attempt(ctx, row, k.Name, func() {
					with(ctx, k, server.Options{Keys: keys()}, func(p *server.Process) {
						progress("%s, %s", p.Name(), row)
						var r waited
						cpu := peer.run(ctx, &r, p.Addr(), "/waiters", kind, "180", strconv.Itoa(s.waiters))
						note := func(what string, v float64) {
							list = append(list, reading{row, what, p.Name(), once(v)})
						}
						note("served", float64(r.Served))
						note("s", r.Seconds)
						note("sessions lost", float64(r.Lost))
						note("reconnects", float64(r.Reconnects))
						note("client CPU s", cpu.Seconds())
						note("server CPU s", cpuOfOne(p.Pid()).Seconds())
						if peer.name == "gozkd" && (r.Lost > 0 || r.Served < s.waiters) {
							must.Failf("a session was lost, or not all were served: %+v", r)
						}
					})
				})
			}
		}
	}
	s.out.report("waiters", fmt.Sprintf("%d waiters of one client, by library", s.waiters), list)
}

// waitersPeer lets waiters wait with our recipes, in a process of its own. args are an address, a
// path, what is waited for, the limit in seconds, and the number of waiters.
func waitersPeer(ctx context.Context, args []string) {
	if len(args) != 5 {
		must.Failf("waiters-peer: %d arguments, want 5", len(args))
	}
	c := must.Get(recipes.Connect(ctx, args[:1],
		recipes.SessionTimeout(10*time.Second), recipes.Retry(recipes.Forever(50*time.Millisecond))))
	wait := waiter(c, args[1], args[2])
	var r waited
	var watching sync.WaitGroup
	states := c.States(ctx)
	// Ends when the Client is closed; awaited below.
	watching.Go(func() {
		for s := range states {
			switch s {
			case recipes.Lost:
				r.Lost++
			case recipes.Reconnected:
				r.Reconnects++
			default:
			}
		}
	})
	ctx, cancel := context.WithTimeout(ctx, must.Get(time.ParseDuration(args[3]+"s")))
	defer cancel()
	begun := time.Now()
	var served, failed atomic.Int64
	var wg sync.WaitGroup
	for i := range must.Get(strconv.Atoi(args[4])) {
		wg.Go(func() {
			if err := wait(ctx, i); err == nil {
				served.Add(1)
			} else if failed.Add(1) <= 3 {
				progress("%v", err)
			}
		})
	}
	wg.Wait()
	r.Served, r.Seconds = int(served.Load()), time.Since(begun).Seconds()
	must.Do(c.Close())
	watching.Wait()
	must.Do(json.NewEncoder(os.Stdout).Encode(r))
}

// waiter returns the function that each waiter calls. Its error is nil if the waiter was served.
func waiter(c *recipes.Client, path, kind string) func(ctx context.Context, i int) error {
	nothing := func(context.Context) error { return nil }
	switch kind {
	case "lock":
		m := lock.NewMutex(c, path, nil)
		return func(ctx context.Context, _ int) error { return m.With(ctx, nothing) }
	case "semaphore":
		s := lock.NewSemaphore(c, path, 10, nil)
		return func(ctx context.Context, _ int) error { return s.With(ctx, nothing) }
	}
	return func(ctx context.Context, i int) error {
		l := election.NewLatch(c, path, strconv.Itoa(i))
		if err := l.Start(ctx); err != nil {
			return err
		}
		if _, err := l.Await(ctx); err != nil {
			return err
		}
		return l.Close()
	}
}
