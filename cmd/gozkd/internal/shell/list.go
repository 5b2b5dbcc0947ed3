package shell

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
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

// listBelow lists path and all znodes below it: text as they come, JSON as a single value.
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

func visitBelow(ctx context.Context, zk *client.Client, path string, watch bool, f func(path string) error) (err error) {
	var names []string
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
