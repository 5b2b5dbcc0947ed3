package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

func runList(ctx context.Context, c *call) error {
	if c.has("?") {
		help := "usage: ls [options] path\n" + c.command.flagHelp()
		if err := c.print(help, help); err != nil {
			return err
		}
	}
	if len(c.args) == 0 {
		return errUsage
	}
	path := c.args[0]
	switch page := c.has("page"); {
	case page && (c.has("s") || c.has("w") || c.has("R")):
		return usageError("-page cannot be combined with -s, -w or -R")
	case page:
		return c.listPages(ctx, path)
	case c.has("after"):
		return usageError("-after needs -page")
	}
	watch := c.watchWanted("ls")
	if c.has("R") {
		return c.listBelow(ctx, path, watch)
	}
	names, st, err := c.zk.Children(ctx, path, watch)
	if err != nil {
		return err
	}
	slices.Sort(names)
	r := struct {
		Path     string   `json:"path"`
		Children []string `json:"children"`
		Stat     *stat    `json:"stat,omitempty"`
	}{path, names, c.wantedStat(st)}
	return c.print(r, "["+strings.Join(names, ", ")+"]\n"+r.Stat.String())
}

// listPages lists the names of children in a line each, while they come.
func (c *call) listPages(ctx context.Context, path string) error {
	return c.list(func(l *listing) error {
		for child, err := range c.zk.ChildrenPages(ctx, path, client.PageOptions{StartAfter: c.value("after")}) {
			if err != nil {
				return err
			}
			if err := l.add(child.Name, func() string { return child.Name + "\n" }); err != nil {
				return err
			}
		}
		return nil
	})
}

// listBelow lists path and all znodes below it: text while the walk goes on, JSON as a single value
// at the end.
func (c *call) listBelow(ctx context.Context, path string, watch bool) error {
	if c.json != nil {
		var paths []string
		err := visit(ctx, c.zk, path, watch, func(p string) error { paths = append(paths, p); return nil })
		if len(paths) == 0 {
			return err
		}
		return errors.Join(c.print(paths, ""), err)
	}
	return c.list(func(l *listing) error {
		return visit(ctx, c.zk, path, watch, func(p string) error { return l.add(p, func() string { return p + "\n" }) })
	})
}

// visit calls f with path and the paths of all znodes below it: sorted siblings before the children
// of the first. Znodes that are deleted meanwhile are skipped. If watch is true, visit sets child
// watches everywhere and a data watch at path. An error of f ends the visit.
func visit(ctx context.Context, zk *client.Client, path string, watch bool, f func(path string) error) error {
	if _, _, err := zk.Get(ctx, path, watch); err != nil {
		return err
	}
	if err := f(path); err != nil {
		return err
	}
	return visitBelow(ctx, zk, path, watch, f)
}

func visitBelow(ctx context.Context, zk *client.Client, path string, watch bool, f func(path string) error) error {
	var names []string
	var err error
	if watch {
		names, _, err = zk.Children(ctx, path, true)
		slices.Sort(names)
	} else {
		names, _, err = subtree.Names(ctx, zk, path)
	}
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f(subtree.Join(path, name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := visitBelow(ctx, zk, subtree.Join(path, name), watch, f); err != nil {
			return err
		}
	}
	return nil
}

func runTree(ctx context.Context, c *call) error {
	below, err := c.number("L", 0, subtree.All)
	if err != nil {
		return err
	}
	var total usage
	var open []bool // per depth above the current znode: whether siblings follow
	err = c.list(func(l *listing) error {
		return c.walk(ctx, c.args[0], subtree.Options{Below: below}, func(n *subtree.Znode) error {
			total.add(n)
			open = append(open[:n.Depth], !n.Last)
			return l.add(foundOf(n), func() string { return treeLine(n, open, c.has("s")) })
		})
	})
	if total.Znodes > 0 {
		c.say(c.err, fmt.Sprintf("%s, %s", plural(total.Znodes, "znode"), humanize.IBytes(uint64(total.Bytes))))
	}
	return err
}

func treeLine(n *subtree.Znode, open []bool, withSize bool) string {
	var line strings.Builder
	if n.Depth == 0 {
		line.WriteString(n.Path)
	} else {
		for _, open := range open[1:n.Depth] {
			line.WriteString(map[bool]string{true: "│   ", false: "    "}[open])
		}
		line.WriteString(map[bool]string{true: "├── ", false: "└── "}[!n.Last] + path.Base(n.Path))
	}
	if withSize {
		line.WriteString(" [" + humanize.IBytes(uint64(n.Stat.DataLength)) + "]")
	}
	if owner := n.Stat.EphemeralOwner; owner != 0 {
		line.WriteString(" (ephemeral, " + owner.String() + ")")
	}
	return line.String() + "\n"
}

// found is a znode in the JSON output of find and tree.
type found struct {
	Path       string `json:"path"`
	DataLength int32  `json:"dataLength"`
	Children   int32  `json:"numChildren"`
	Owner      string `json:"ephemeralOwner,omitempty"`
}

func foundOf(n *subtree.Znode) found {
	f := found{Path: n.Path, DataLength: n.Stat.DataLength, Children: n.Stat.NumChildren}
	if n.Stat.EphemeralOwner != 0 {
		f.Owner = n.Stat.EphemeralOwner.String()
	}
	return f
}

func runFind(ctx context.Context, c *call) error {
	matches, err := c.criteria()
	if err != nil {
		return err
	}
	return c.list(func(l *listing) error {
		return c.walk(ctx, c.args[0], subtree.Options{Data: c.has("data"), Below: subtree.All}, func(n *subtree.Znode) error {
			if !matches(n) {
				return nil
			}
			return l.add(foundOf(n), func() string { return n.Path + "\n" })
		})
	})
}

// criteria returns a function that reports whether a znode meets all conditions of find.
func (c *call) criteria() (func(*subtree.Znode) bool, error) {
	var all []func(*subtree.Znode) bool
	if c.has("name") {
		glob := c.value("name")
		if _, err := path.Match(glob, ""); err != nil {
			return nil, usageError(glob + ": " + err.Error())
		}
		all = append(all, func(n *subtree.Znode) bool {
			ok, _ := path.Match(glob, path.Base(n.Path)) // the pattern is valid
			return ok
		})
	}
	if c.has("data") {
		re, err := regexp.Compile(c.value("data"))
		if err != nil {
			return nil, usageError(err.Error())
		}
		all = append(all, func(n *subtree.Znode) bool { return re.Match(n.Data) })
	}
	if c.has("owner") {
		id, err := strconv.ParseUint(strings.TrimPrefix(c.value("owner"), "0x"), 16, 64)
		if err != nil {
			return nil, usageError("-owner must be a session id such as 0x100000000000001: " + c.value("owner"))
		}
		all = append(all, func(n *subtree.Znode) bool { return id != 0 && n.Stat.EphemeralOwner == proto.SessionID(id) })
	}
	if c.has("type") {
		kinds := map[string]func(*subtree.Znode) bool{
			"p": func(n *subtree.Znode) bool { return n.Stat.EphemeralOwner == 0 },
			"e": func(n *subtree.Znode) bool { return n.Stat.EphemeralOwner != 0 },
			"s": func(n *subtree.Znode) bool { _, _, ok := sequence.Parse(n.Path); return ok },
		}
		is, ok := kinds[c.value("type")]
		if !ok {
			return nil, usageError("-type must be p, e or s: " + c.value("type"))
		}
		all = append(all, is)
	}
	return func(n *subtree.Znode) bool {
		return !slices.ContainsFunc(all, func(is func(*subtree.Znode) bool) bool { return !is(n) })
	}, nil
}

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

// usage counts znodes and the bytes of their data.
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

// usageLine is the usage of a subtree.
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
	slices.SortFunc(a.largest, func(x, y usageLine) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Znodes, x.Znodes), strings.Compare(x.Path, y.Path))
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
