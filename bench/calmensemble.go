//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// catchUps is how often a member is stopped and catches up.
const catchUps = 3

// calmCatchUp compares writes to two of three members while the third is in sync, and while the
// third fetches more missed writes than their logs must keep.
func calmCatchUp(ctx context.Context, s *settings, k kind) (ms []moment) {
	e := k.startEnsemble(ctx, nMembers, keys())
	defer must.Finally(e.Stop)
	leader := must.Get(e.Leader(ctx))
	var lagging *server.Member
	var addrs []string // of the other members
	for _, m := range e.Members {
		if m != leader && lagging == nil {
			lagging = m
		} else {
			addrs = append(addrs, m.Addr())
		}
	}
	prepareAll(e.Addrs())
	sets := workloadNamed("set 100 B")
	quiet := pacedFor(ctx, addrs, s.rate, sets, sleepFor(s.calm))
	during := new(pacedSeen)
	var took []float64
	for range catchUps {
		must.Do(lagging.Kill())
		writesWithout(addrs, s.lag)
		ms := during.while(ctx, addrs, s.rate, sets, func(ctx context.Context) {
			must.Do(lagging.Start())
			awaitSynced(ctx, lagging)
		})
		took = append(took, ms)
	}
	between := spreadOf(took)
	return []moment{{what: aloneThree, server: e.Name(), seen: quiet},
		{what: catchingUp, than: aloneThree, server: e.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sets without it, then %.0f ms (%.0f to %.0f) until it had them",
			catchUps, thousands(float64(s.lag)), between.Median, between.Min, between.Max)}}
}

// writesWithout pipelines n sets over the members at the addresses.
func writesWithout(addrs []string, n int) {
	runOnce(target{addrs: addrs}, shape{16, 16}, &workload{name: "set", next: func(c *client) bool {
		if n == 0 {
			return false
		}
		n--
		c.request(proto.OpSetData, setRequest(c).Append)
		return true
	}}, 0)
}

// awaitSynced waits until the member serves and has everything that the other members had at the
// time of the call.
func awaitSynced(ctx context.Context, m *server.Member) {
	const interval, patience = 2 * time.Millisecond, 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		// ZooKeeper may accept a connection before it can serve, and then never answers on that
		// connection.
		c, err := dialImpatient(m.Addr(), 0, 1, time.Second)
		if err == nil {
			path := rootPath
			err = c.call(proto.OpSync, (&proto.PathRequest{Path: &path}).Append, 0)
			if err = errors.Join(err, c.close()); err == nil {
				return
			}
		}
		if !sleep(ctx, interval) {
			must.Failf("member %d does not catch up: %w\n%s", m.ID, errors.Join(err, ctx.Err()), m.Log())
		}
	}
}
