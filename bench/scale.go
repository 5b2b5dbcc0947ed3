//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// Rows of different sizes of the tree, each size on new servers, so that no size inherits the
// garbage of another. Settings.znodes bounds the sizes.
var (
	scaleKeys     = []int{1_000, 10_000, 1_000_000, 10_000_000}
	scaleChildren = []int{1_000, 50_000, 1_000_000}
)

// scaleRows names the rows that take a key at random, and leave its data as long as before.
var scaleRows = []string{"get 100 B", "exists", "set 100 B", "multi of 10 sets", "mixed: 90% get, 10% set", "mixed: 50% get, 50% set"}

// scaled is a state of a server, and the rows for it.
type scaled struct {
	rows []*workload
	fill func(ctx context.Context, addr string) // brings about the state
}

// scaledOver returns the rows over n keys, a thousand per parent.
func scaledOver(n int) scaled {
	s := scaled{fill: func(ctx context.Context, addr string) { fillMany(ctx, addr, n, payload) }}
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
		fill: func(ctx context.Context, addr string) {
			fillAt(ctx, addr, parents, nil, func(i int) string { return belowPath(i, "")[:len("/c000000")] })
			fillAt(ctx, addr, parents*n, payload, func(i int) string { return belowPath(i%parents, "n", i) })
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

// benchScale measures each size of the tree on new servers, which get the same load in turn.
func benchScale(ctx context.Context, s *settings) {
	var all []comparison
	for _, size := range scales(s.znodes) {
		rows := slices.DeleteFunc(size.rows, func(w *workload) bool { return !strings.HasPrefix(w.name, s.rows) })
		if len(rows) == 0 {
			continue
		}
		s.withTargets(ctx, 1, func(targets []target) {
			for _, t := range targets {
				progress("scale: %s: filling %s", rows[0].name, t.name)
				size.fill(ctx, t.addrs[0])
			}
			all = append(all, compareRows(ctx, s, rows, targets, s.warm)...)
		})
	}
	if all == nil {
		must.Failf("no row of scale begins with %q, or it has more than %d znodes", s.rows, s.znodes)
	}
	s.out.comparisons("scale", all)
}
