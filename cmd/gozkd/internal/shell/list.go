package shell

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

func runList(ctx context.Context, c *call) error {
	if c.has("?") {
		if err := c.show(listHelp(c.command.flagHelp())); err != nil {
			return err
		}
	}
	if len(c.args) == 0 {
		return errUsage
	}
	path := c.args[0]
	watch := c.watchWanted("ls")
	if err := checkPath(path); err != nil {
		return err
	}
	if c.has("R") {
		return c.listBelow(ctx, path, watch)
	}
	names, st, err := c.zk.Children(ctx, path, watch)
	if err != nil {
		return err
	}
	slices.Sort(names)
	r := listResult{Path: path, Children: names}
	if c.has("s") {
		r.Stat = c.stat(st)
	}
	return c.show(r)
}

type listResult struct {
	Path     string   `json:"path"`
	Children []string `json:"children"`
	Stat     *stat    `json:"stat,omitempty"`
}

func (r listResult) text(out, err io.Writer) {
	_, _ = io.WriteString(out, "["+strings.Join(r.Children, ", ")+"]\n")
	r.Stat.text(out, err)
}

// listBelow lists path and all below it: as text while it finds them, as JSON in one value.
func (c *call) listBelow(ctx context.Context, path string, watch bool) error {
	if c.settings.json {
		var r pathsResult
		err := visit(ctx, c.zk, path, watch, func(p string) error { r = append(r, pathLine(p)); return nil })
		if len(r) == 0 {
			return err
		}
		return errors.Join(c.show(r), err)
	}
	out := &listing{c: c}
	err := visit(ctx, c.zk, path, watch, func(p string) error { return out.add(pathLine(p)) })
	return errors.Join(out.flush(), err)
}

// pathsResult is a list of paths.
type pathsResult []pathLine

func (r pathsResult) text(out, err io.Writer) {
	for _, p := range r {
		p.text(out, err)
	}
}

// pathLine is a path on a line of its own.
type pathLine string

func (p pathLine) text(out, _ io.Writer) { _, _ = io.WriteString(out, string(p)+"\n") }

// listHelp is what "ls -?" prints.
type listHelp string

func (r listHelp) text(out, _ io.Writer) {
	_, _ = io.WriteString(out, "usage: ls [options] path\n"+string(r))
}

// visit calls f with path and all below it, a znode's children in order before the children of the first. What goes away
// meanwhile is left out. With watch, children are watched everywhere and data at path. An error of f ends it.
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
	names, _, err := zk.Children(ctx, path, watch)
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := f(join(path, name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := visitBelow(ctx, zk, join(path, name), watch, f); err != nil {
			return err
		}
	}
	return nil
}
