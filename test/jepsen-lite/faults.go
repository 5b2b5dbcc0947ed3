//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A fault is something that is done to the ensemble.
type fault struct {
	name   string
	weight int // how often, relative to the others
	// inject does it and returns what was done, for the log, and how to undo it. It may return heal with an error too.
	inject func(ctx context.Context, n *nemesis) (what string, heal func(context.Context) error, err error)
	// longest bounds how long it lasts.
	longest time.Duration
	// whole: only when every member serves, and the next fault only when they do again. It is for what ZooKeeper promises
	// nothing about otherwise: a majority that has lost its disks.
	whole bool
	// small: needs the member with the small disk.
	small bool
}

// faults returns all kinds of faults.
func faults() []fault {
	return []fault{
		{name: "kill", weight: 4, longest: 4 * time.Second, inject: killAny},
		{name: "kill-leader", weight: 4, longest: 4 * time.Second, inject: killLeader},
		{name: "restart-all", weight: 1, longest: 2 * time.Second, inject: killAll},
	}
}

func killAny(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return kill(n.any())
}

func killLeader(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return kill(n.leader(ctx))
}

// kill ends a member with kill -9 until it is healed.
func kill(m *Member) (string, func(context.Context) error, error) {
	return fmt.Sprintf("member %d", m.ID), func(context.Context) error { return m.Start() }, m.Kill()
}

// killAll ends all members at once.
func killAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	var errs []error
	for _, m := range n.cluster.Members {
		errs = append(errs, m.Kill())
	}
	return "all", n.startAll, errors.Join(errs...)
}
