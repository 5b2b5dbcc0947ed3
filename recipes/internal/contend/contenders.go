package contend

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// ChildNames returns the names of dir's children, none if dir is missing.
func ChildNames(ctx context.Context, c *recipes.Client, dir string) ([]string, error) {
	names, _, err := c.Children(ctx, dir)
	return names, IgnoreMissing(err)
}

// IgnoreMissing returns err, and nil if err says that a znode is missing.
func IgnoreMissing(err error) error {
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	return err
}

// Contenders returns those children of dir that choose picks from their names, in its order; see
// ReadChildren. sequence.Sequential picks those in line. A missing directory has none.
func Contenders(
	ctx context.Context, c *recipes.Client, dir string, choose func(names []string) []string,
) ([]recipes.Contender, error) {
	names, err := ChildNames(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	return ReadChildren(ctx, c, dir, choose(names))
}

// ReadChildren returns the children of dir with the given names, in that order, except those that
// are gone. Of those that may not be read, it returns the path alone.
func ReadChildren(ctx context.Context, c *recipes.Client, dir string, names []string) ([]recipes.Contender, error) {
	all := make([]recipes.Contender, len(names))
	err := calls.Each(len(names), func(i int) error {
		path := znodepath.Join(dir, names[i])
		data, stat, err := c.Get(ctx, path)
		switch {
		case errors.Is(err, proto.ErrNoNode):
			return nil
		case errors.Is(err, proto.ErrNoAuth):
			all[i].Path = path
			return nil
		case err != nil:
			return err
		}
		all[i] = recipes.Contender{Path: path, Data: data, Session: int64(stat.EphemeralOwner), Since: time.UnixMilli(stat.CtimeMs), Zxid: int64(stat.Czxid)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(x recipes.Contender) bool { return x.Path == "" }), nil
}
