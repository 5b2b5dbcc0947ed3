//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// Rows of different sizes of the tree, each size on new servers, so that no size inherits the
// garbage of another. Settings.znodes bounds the sizes.
var (
	scaleKeys     = []int{1_000, 10_000, 1_000_000}
	scaleChildren = []int{1_000, 50_000, 1_000_000}
)

// scaleRows names the rows that take a key at random, and leave its data as long as before.
var scaleRows = []string{"get 100 B", "exists", "set 100 B", "multi of 10 sets", "mixed: 90% get, 10% set", "mixed: 50% get, 50% set"}

// scaled is a state of a server, and the rows for it.
type scaled struct {
	rows    []*workload
	shapes  []shape // nil: those of the flags
	members int     // more than 1: of an ensemble
	// fill brings about the state, and returns what ends it after the rows.
	fill func(ctx context.Context, addrs []string) (end func() error)
}

func nothingToEnd() error { return nil }

// scaledOver returns the rows over n keys, a thousand per parent.
func scaledOver(n int) scaled {
	s := scaled{fill: func(ctx context.Context, addrs []string) func() error {
		fillMany(ctx, addrs[0], n, payload)
		return nothingToEnd
	}}
	all := workloadsOver(func(c *client) string { return manyPath(c.next(n)) })
	for _, name := range scaleRows {
		w := named(all, name)
		w.name = fmt.Sprintf("%s, %s keys", name, thousands(float64(n)))
		s.rows = append(s.rows, w)
	}
	return s
}

// scaledBelow returns the row of creates below parents that have n children each at the beginning.
// The tree has as many znodes whatever n is, and the creates of a round take turns over all
// parents.
func scaledBelow(n, znodes int) scaled {
	parents := znodes / n
	return scaled{
		fill: func(ctx context.Context, addrs []string) func() error {
			fillAt(ctx, addrs[0], parents, nil, func(i int) string { return belowPath(i, "")[:len("/c000000")] })
			fillAt(ctx, addrs[0], parents*n, payload, func(i int) string { return belowPath(i%parents, "n", i) })
			return nothingToEnd
		},
		rows: []*workload{{
			name: fmt.Sprintf("create 100 B, %s children per parent", thousands(float64(n))),
			next: func(c *client) bool {
				appendCreate(c, belowPath((c.made+c.index)%parents, "m", c.index, c.made), payload)
				c.made++
				return true
			},
			undo: &workload{name: "delete", next: func(c *client) bool {
				if c.made == 0 {
					return false
				}
				c.made--
				path := belowPath((c.made+c.index)%parents, "m", c.index, c.made)
				c.request(proto.OpDelete, (&proto.PathVersionRequest{Path: path, Version: -1}).Append)
				return true
			}},
		}},
	}
}

// belowPath returns the path of a child of one of up to a million parents, named by a prefix and
// numbers. It does without package fmt, which costs too much here.
func belowPath(parent int, prefix string, numbers ...int) string {
	var room [64]byte
	b := append(room[:0], "/c000000/"...)
	digits(b[2:8], parent)
	b = append(b, prefix...)
	for _, n := range numbers {
		b = append(b, "00000000"...)
		digits(b[len(b)-8:], n)
	}
	return string(b)
}

// scales returns all sizes up to this many znodes.
func scales(znodes int) (all []scaled) {
	for _, n := range scaleKeys {
		if n <= znodes {
			all = append(all, scaledOver(n))
		}
	}
	for _, n := range scaleChildren {
		if n <= znodes {
			all = append(all, scaledBelow(n, znodes))
		}
	}
	return all
}

// benchScale measures sizes of the tree.
func benchScale(ctx context.Context, s *settings) { benchScaled(ctx, s, "scale", scales(s.znodes)) }

// benchGrowth measures what else grows.
func benchGrowth(ctx context.Context, s *settings) { benchScaled(ctx, s, "growth", growths()) }

// benchScaled measures each state on new servers, which get the same load in turn, and outputs the
// figures as name.
func benchScaled(ctx context.Context, s *settings, name string, states []scaled) {
	var all []comparison
	for _, state := range states {
		var rows []*workload
		for _, w := range state.rows {
			if strings.HasPrefix(w.name, s.rows) {
				rows = append(rows, w)
			}
		}
		if state.rows = rows; rows != nil {
			all = append(all, compareScaled(ctx, s, name, state)...)
		}
	}
	if all == nil {
		must.Failf("no row of %s begins with %q, or it has more than %d znodes", name, s.rows, s.znodes)
	}
	must.Do(s.out.comparisons(name, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), all))
}

func compareScaled(ctx context.Context, s *settings, name string, state scaled) (all []comparison) {
	s.withTargets(ctx, state.members, func(targets []target) {
		for _, t := range targets {
			progress("%s: %s: filling %s", name, state.rows[0].name, t.name)
			defer must.Finally(state.fill(ctx, t.addrs))
		}
		changed := *s
		if state.shapes != nil {
			changed.shapes = state.shapes
			changed.warmShape = state.shapes[len(state.shapes)-1]
		}
		all = compareRows(ctx, &changed, state.rows, targets, s.warm)
	})
	return all
}
