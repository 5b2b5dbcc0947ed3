//go:build linux

package jepsenlite

import (
	"context"
	"time"
)

// A fault is a way to disturb the ensemble.
type fault struct {
	name   string
	weight int // relative frequency
	// inject disturbs the ensemble and returns a description and the function that heals it,
	// possibly along with an error.
	inject func(ctx context.Context, n *nemesis) (what string, heal func(context.Context) error, err error)
	// longest bounds its duration.
	longest time.Duration
	// whole: only when every member serves, and the next fault only when they serve again. For
	// faults that take disks, of which a majority must never be lost.
	whole bool
	// strict: beyond ZooKeeper's promises but within gozkd's; used on gozkd by default.
	strict bool
	// small: needs the member with the small disk.
	small bool
}

// faults returns all kinds of faults.
func faults() []fault {
	return []fault{
		{name: "kill", weight: 3, longest: 4 * time.Second, inject: killAny},
		{name: "kill-leader", weight: 3, longest: 4 * time.Second, inject: killLeader},
		{name: "restart-all", weight: 1, longest: 2 * time.Second, inject: killAll},
		{name: "pause", weight: 2, longest: 6 * time.Second, inject: pauseAny},
		{name: "pause-leader", weight: 2, longest: 6 * time.Second, inject: pauseLeader},
		{name: "partition", weight: 2, longest: 6 * time.Second, inject: partitionAny},
		{name: "partition-leader", weight: 2, longest: 6 * time.Second, inject: partitionLeader},
		{name: "one-way", weight: 2, longest: 6 * time.Second, inject: oneWay},
		{name: "ring", weight: 1, longest: 6 * time.Second, inject: breakOneLink},
		{name: "delay", weight: 2, longest: 6 * time.Second, inject: delay},
		{name: "cut", weight: 1, longest: time.Second, inject: cutAll},
		{name: "wipe", weight: 1, longest: 3 * time.Second, whole: true, inject: wipe},
		{name: "wipe-and-kill", weight: 1, longest: 5 * time.Second, whole: true, strict: true, inject: wipeAndKill},
		{name: "roll-back", weight: 1, longest: 3 * time.Second, whole: true, inject: rollBack},
		{name: "reconfig", weight: 1, longest: 3 * time.Second, whole: true, inject: removeAndAdd},
		{name: "disk-full", weight: 1, longest: 5 * time.Second, small: true, inject: fillDisk},
	}
}
