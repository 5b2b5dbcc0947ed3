//go:build linux

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// connectors are how many clients open and close sessions at the same time.
var connectors = [...]int{16, 1}

// benchConnects measures sessions that are opened on new connections and closed at once. With TLS,
// each connection does a full handshake, and both sides verify a certificate.
func benchConnects(ctx context.Context, s *settings) {
	name, row := "connects", "session opened and closed"
	if s.tlsKeys != nil {
		name, row = "connects-tls", row+", mutual TLS"
	}
	s.withTargets(ctx, 1, func(targets []target) {
		for _, t := range targets {
			connectsFor(ctx, t, connectors[0], s.warm)
		}
		var all []comparison
		for _, n := range connectors {
			c := comparison{Row: row, Shape: shape{n, 1}.String()}
			c.Servers = inRounds(ctx, s, c.key(), targets, func(t target) *result { return connectsFor(ctx, t, n, s.seconds) })
			all = append(all, c)
		}
		s.out.comparisons(name, all)
	})
}

// connectsFor lets n clients open a session on a new connection and close it, repeatedly. A session
// counts when its close was answered within d; its latency starts with its connection.
func connectsFor(ctx context.Context, t target, n int, d time.Duration) *result {
	res := new(result)
	before, start := usedBy(t.pids), time.Now()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	results, errs := make([]result, n), make([]error, n)
	var clients sync.WaitGroup
	for i := range n {
		// Ends after d or with ctx; awaited below.
		clients.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				begun := time.Now()
				var c *client
				if c, errs[i] = dial(t.addrs[0], i, 1); errs[i] == nil {
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
	res.finish(time.Since(start), t.pids, before)
	must.Do(errors.Join(errs...))
	for i := range results {
		res.ops += results[i].ops
		res.latencies.add(&results[i].latencies)
	}
	return res
}
