//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/test/compat/server"
)

// connectors is how many clients open and close sessions at the same time.
const connectors = 16

// benchConnects measures sessions that are opened, and closed at once, on new connections.
func benchConnects(ctx context.Context, s *settings) (err error) {
	var processes []*server.Process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop())
		}
	}()
	for _, k := range s.servers {
		p, err := k.start(ctx, server.Options{Keys: keys()})
		if err != nil {
			return err
		}
		processes = append(processes, p)
		if _, err := connectsFor(p, s.warm); err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
	}
	seen := make([]measured, len(processes))
	for range s.rounds {
		for i, p := range processes {
			r, err := connectsFor(p, s.seconds)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name(), err)
			}
			progress("connects %-16s %7.0f sessions/s, %.0f µs of CPU for each", p.Name(), r.opsPerSecond(), r.cpuPerOp())
			seen[i].add(r)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	c := comparison{Row: "session opened and closed", Shape: fmt.Sprintf("%dx1", connectors)}
	for i, p := range processes {
		m, err := memoryOf(p.Pid())
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, seen[i].figures(p.Name(), m))
	}
	return s.out.comparisons("connects", fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), []comparison{c})
}

// connectsFor has clients open a session and close it, again and again. A session counts when its close was answered.
func connectsFor(p *server.Process, d time.Duration) (*result, error) {
	pids := []int{p.Pid()}
	before, err := usedBy(pids)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	results, errs := make([]result, connectors), make([]error, connectors)
	var wg sync.WaitGroup
	for i := range connectors {
		// Ends when the time is over; awaited below.
		wg.Go(func() {
			for errs[i] == nil && time.Since(start) < d {
				began := time.Now()
				c, err := dial(p.Addr(), i, 1)
				if err == nil {
					err = c.close()
				}
				if errs[i] = err; err == nil {
					results[i].ops++
					results[i].latencies.note(time.Since(began))
				}
			}
		})
	}
	wg.Wait()
	all := new(result)
	for i := range results {
		all.ops += results[i].ops
		all.latencies.add(&results[i].latencies)
	}
	return all, errors.Join(errors.Join(errs...), all.finish(time.Since(start), pids, before))
}
