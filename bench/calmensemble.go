//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// catchUps is how often a member is stopped and catches up.
const catchUps = 3

// calmCatchUp compares writes to two of three members while the third is in sync, and while the
// third fetches more missed writes than their logs must keep.
func calmCatchUp(ctx context.Context, s *settings, k kind) (ms []moment, err error) {
	e, err := k.startEnsemble(ctx, nMembers, keys())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	leader, err := e.Leader(ctx)
	if err != nil {
		return nil, err
	}
	var lagging *server.Member
	var addrs []string // of the other members
	for _, m := range e.Members {
		if m != leader && lagging == nil {
			lagging = m
		} else {
			addrs = append(addrs, m.Addr())
		}
	}
	if err := prepareAll(e.Addrs()); err != nil {
		return nil, err
	}
	sets := workloadNamed("set 100 B")
	quiet, err := pacedFor(ctx, addrs, s.rate, sets, sleepFor(s.calm))
	if err != nil {
		return nil, err
	}
	during := new(pacedSeen)
	var took []float64
	for range catchUps {
		if err := lagging.Kill(); err != nil {
			return nil, err
		}
		if err := writesWithout(addrs, s.lag); err != nil {
			return nil, err
		}
		ms, err := during.while(ctx, addrs, s.rate, sets, func(ctx context.Context) error {
			if err := lagging.Start(); err != nil {
				return err
			}
			return awaitSynced(ctx, lagging)
		})
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
	}
	between := spreadOf(took)
	return []moment{{what: aloneThree, server: e.Name(), seen: quiet},
		{what: catchingUp, than: aloneThree, server: e.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sets without it, then %.0f ms (%.0f to %.0f) until it had them",
			catchUps, thousands(float64(s.lag)), between.Median, between.Min, between.Max)}}, nil
}

// writesWithout pipelines n sets over the members at the addresses.
func writesWithout(addrs []string, n int) error {
	l, err := openLoad(addrs, 16, 16)
	if err != nil {
		return err
	}
	left := n
	_, err = l.run(&workload{name: "set", next: func(c *client) bool {
		if left == 0 {
			return false
		}
		left--
		c.request(proto.OpSetData, setRequest(c).Append)
		return true
	}}, 0, nil)
	return errors.Join(err, l.close())
}

// awaitSynced waits until the member serves and has everything that the other members had at the
// time of the call.
func awaitSynced(ctx context.Context, m *server.Member) error {
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
				return nil
			}
		}
		if !sleep(ctx, interval) {
			return fmt.Errorf("member %d does not catch up: %w\n%s", m.ID, errors.Join(err, ctx.Err()), m.Log())
		}
	}
}
