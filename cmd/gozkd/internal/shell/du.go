package shell

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/internal/subtree"
)

func runUsage(ctx context.Context, c *call) error {
	depth, err := c.number("d", 0, 1)
	if err != nil {
		return err
	}
	lines, err := c.number("n", 1, 100)
	if err != nil {
		return err
	}
	u := &usageSummer{depth: depth, keep: lines}
	err = c.walk(ctx, c.args[0], subtree.Options{Below: subtree.All}, func(n *subtree.Znode) error {
		u.add(n)
		return nil
	})
	if len(u.path) == 0 {
		return err
	}
	r := u.result()
	if showErr := c.print(r, r.text(c.has("h"))); showErr != nil {
		return showErr
	}
	return err
}

type usage struct {
	Znodes int64 `json:"znodes"`
	Bytes  int64 `json:"bytes"`
}

func (u *usage) add(n *subtree.Znode) {
	u.Znodes++
	u.Bytes += int64(n.Stat.DataLength)
}

func (u *usage) addAll(other usage) {
	u.Znodes += other.Znodes
	u.Bytes += other.Bytes
}

type usageLine struct {
	Path string `json:"path"`
	usage
}

// usageSummer sums up subtrees during a walk and keeps the largest.
type usageSummer struct {
	depth, keep int
	path        []usageLine // from the root to the last znode
	largest     []usageLine
	others      usage // subtrees that were not kept
	nOthers     int64
}

func (a *usageSummer) add(n *subtree.Znode) {
	for len(a.path) > n.Depth {
		a.pop()
	}
	line := usageLine{Path: n.Path}
	line.usage.add(n)
	a.path = append(a.path, line)
}

// pop finishes the last subtree of the path and adds its usage to the parent.
func (a *usageSummer) pop() {
	last := len(a.path) - 1
	line := a.path[last]
	a.path = a.path[:last]
	if last > 0 {
		a.path[last-1].addAll(line.usage)
	}
	if last == 0 || last > a.depth {
		return
	}
	a.largest = append(a.largest, line)
	if len(a.largest) >= 2*a.keep+100 {
		a.cut()
	}
}

// cut keeps the largest subtrees, in order.
func (a *usageSummer) cut() {
	sort.Slice(a.largest, func(i, j int) bool {
		x, y := &a.largest[i], &a.largest[j]
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Znodes, x.Znodes), strings.Compare(x.Path, y.Path)) < 0
	})
	for _, line := range a.largest[min(a.keep, len(a.largest)):] {
		a.others.addAll(line.usage)
		a.nOthers++
	}
	a.largest = a.largest[:min(a.keep, len(a.largest))]
}

func (a *usageSummer) result() usageResult {
	for len(a.path) > 1 {
		a.pop()
	}
	a.cut()
	r := usageResult{Total: a.path[0], Below: append([]usageLine{}, a.largest...), NotListed: a.nOthers}
	if a.depth == 1 { // at more levels, unlisted subtrees are partly contained in listed ones
		r.others = &a.others
	}
	return r
}

type usageResult struct {
	Total     usageLine   `json:"total"`
	Below     []usageLine `json:"below"` // the largest first
	NotListed int64       `json:"not_listed,omitempty"`
	others    *usage
}

// text returns the table. If human is true, sizes have units.
func (r usageResult) text(human bool) string {
	size := func(n int64) string { return strconv.FormatInt(n, 10) }
	if human {
		size = func(n int64) string { return humanize.IBytes(uint64(n)) }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%14s %10s  %s\n", "bytes", "znodes", "path")
	line := func(u usage, path string) { fmt.Fprintf(&b, "%14s %10d  %s\n", size(u.Bytes), u.Znodes, path) }
	for _, l := range r.Below {
		line(l.usage, l.Path)
	}
	switch {
	case r.NotListed > 0 && r.others != nil:
		line(*r.others, fmt.Sprintf("(%d more)", r.NotListed))
	case r.NotListed > 0:
		fmt.Fprintf(&b, "%14s %10s  (%d more)\n", "", "", r.NotListed)
	}
	line(r.Total.usage, r.Total.Path+" (all)")
	return b.String()
}
