//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// connectors is how many clients open and close sessions at the same time.
const connectors = 16

// benchConnects measures sessions that are opened on new connections and closed at once. With TLS,
// each connection does a full handshake, and both sides verify a certificate.
func benchConnects(ctx context.Context, s *settings) {
	name, row := "connects", "session opened and closed"
	if s.tlsKeys != nil {
		name, row = "connects-tls", row+", mutual TLS"
	}
	var processes []*server.Process
	for _, k := range s.servers {
		p := k.start(ctx, server.Options{Keys: s.withTLS(keys())})
		defer must.Finally(p.Stop)
		processes = append(processes, p)
		connectsFor(ctx, p, s.warm)
	}
	seen := make([]measured, len(processes))
	for range s.rounds {
		for i, p := range processes {
			r := connectsFor(ctx, p, s.seconds)
			progress(name+" %-16s %7.0f sessions/s, %.0f µs of CPU for each", p.Name(), r.opsPerSecond(), r.cpuPerOp())
			seen[i].add(r)
			must.Do(ctx.Err())
		}
	}
	c := comparison{Row: row, Shape: fmt.Sprintf("%dx1", connectors)}
	for i, p := range processes {
		c.Servers = append(c.Servers, seen[i].figures(p.Name(), memoryOf(p.Pid())))
	}
	must.Do(s.out.comparisons(name, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), []comparison{c}))
}

// connectsFor lets clients open a session on a new connection and close it, repeatedly. A session
// counts when its close was answered within d; its latency starts with its connection.
func connectsFor(ctx context.Context, p *server.Process, d time.Duration) *result {
	pids, res := []int{p.Pid()}, new(result)
	before, start := usedBy(pids), time.Now()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	results, errs := make([]result, connectors), make([]error, connectors)
	var clients sync.WaitGroup
	for i := range connectors {
		// Ends after d or with ctx; awaited below.
		clients.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				begun := time.Now()
				var c *client
				if c, errs[i] = dial(p.Addr(), i, 1); errs[i] == nil {
					errs[i] = c.close()
				}
				if errs[i] == nil && ctx.Err() == nil {
					results[i].ops++
					results[i].latencies.note(time.Since(begun))
				}
			}
		})
	}
	clients.Wait()
	res.finish(time.Since(start), pids, before)
	must.Do(errors.Join(errs...))
	for i := range results {
		res.ops += results[i].ops
		res.latencies.add(&results[i].latencies)
	}
	return res
}
