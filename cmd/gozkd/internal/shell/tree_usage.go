package shell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
)

func runUsage(ctx context.Context, c *call) error {
	root := c.args[0]
	depth, err := c.number("d", 0, 1)
	if err != nil {
		return err
	}
	lines, err := c.number("n", 1, 100)
	if err != nil {
		return err
	}
	if err := checkPath(root); err != nil {
		return err
	}
	u := &adder{depth: depth, keep: lines}
	err = c.walk(ctx, root, subtree.Options{Below: subtree.All}, func(n *subtree.Node) error {
		u.add(n)
		return nil
	})
	if len(u.path) == 0 {
		return err
	}
	r := u.result()
	r.human = c.has("h")
	if showErr := c.show(r); showErr != nil {
		return showErr
	}
	return err
}

// adder adds up subtrees while a walk goes through them, and keeps the largest.
type adder struct {
	depth, keep int
	path        []usageLine // from the root to the znode that came last
	largest     []usageLine
	others      usage // what was not kept
	nOthers     int64
}

// usageLine is what there is at a path and below it.
type usageLine struct {
	Path string `json:"path"`
	usage
}

func (a *adder) add(n *subtree.Node) {
	for len(a.path) > n.Depth {
		a.pop()
	}
	line := usageLine{Path: n.Path}
	line.usage.add(n)
	a.path = append(a.path, line)
}

// pop finishes the last of the path: its parent has it too.
func (a *adder) pop() {
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

// cut keeps the largest, in order.
func (a *adder) cut() {
	slices.SortFunc(a.largest, func(x, y usageLine) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Znodes, x.Znodes), strings.Compare(x.Path, y.Path))
	})
	for _, line := range a.largest[min(a.keep, len(a.largest)):] {
		a.others.addAll(line.usage)
		a.nOthers++
	}
	a.largest = a.largest[:min(a.keep, len(a.largest))]
}

func (a *adder) result() usageResult {
	for len(a.path) > 1 {
		a.pop()
	}
	a.cut()
	r := usageResult{Total: a.path[0], Below: append([]usageLine{}, a.largest...), NotListed: a.nOthers}
	if a.depth == 1 { // with more levels what is left out is partly in what is listed
		r.others = &a.others
	}
	return r
}

type usageResult struct {
	Total     usageLine   `json:"total"`
	Below     []usageLine `json:"below"` // the largest first
	NotListed int64       `json:"not_listed,omitempty"`
	others    *usage
	human     bool
}

func (r usageResult) text(out, _ io.Writer) {
	size := func(n int64) string { return strconv.FormatInt(n, 10) }
	if r.human {
		size = human
	}
	_, _ = fmt.Fprintf(out, "%14s %10s  %s\n", "bytes", "znodes", "path")
	line := func(u usage, path string) { _, _ = fmt.Fprintf(out, "%14s %10d  %s\n", size(u.Bytes), u.Znodes, path) }
	for _, l := range r.Below {
		line(l.usage, l.Path)
	}
	switch {
	case r.NotListed > 0 && r.others != nil:
		line(*r.others, fmt.Sprintf("(%d more)", r.NotListed))
	case r.NotListed > 0:
		_, _ = fmt.Fprintf(out, "%14s %10s  (%d more)\n", "", "", r.NotListed)
	}
	line(r.Total.usage, r.Total.Path+" (all)")
}
