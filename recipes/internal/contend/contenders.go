package contend

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

const maxConcurrentReads = 16

// ChildNames returns the names of dir's children, none if dir is missing.
func ChildNames(ctx context.Context, c *recipes.Client, dir string) ([]string, error) {
	names, _, err := c.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// Contenders returns the contenders in the line of dir, in order, or those whose names match
// accepts. A missing directory has none. Contenders that leave meanwhile are left out.
func Contenders(ctx context.Context, c *recipes.Client, dir string, match func(name string) bool) ([]recipes.Contender, error) {
	children, err := ChildNames(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	names := sequence.Sequential(children)
	if match != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !match(name) })
	}
	return ReadChildren(ctx, c, dir, names)
}

// Contention returns the line of dir under the Exclusive rule: the first contender holds, the
// others wait. match is as for Contenders.
func Contention(ctx context.Context, c *recipes.Client, dir string, match func(name string) bool) (recipes.Contention, error) {
	all, err := Contenders(ctx, c, dir, match)
	if err != nil || len(all) == 0 {
		return recipes.Contention{}, err
	}
	return recipes.Contention{Holders: all[:1], Waiters: all[1:]}, nil
}

// ReadChildren returns the children of dir with the given names, in that order, except those that
// are gone.
func ReadChildren(ctx context.Context, c *recipes.Client, dir string, names []string) ([]recipes.Contender, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znodepath.Join(dir, name)
	}
	return Read(ctx, c, paths)
}

// Read returns the contenders at paths, in that order, except those that are gone. Of those that may
// not be read, it returns the path alone.
func Read(ctx context.Context, c *recipes.Client, paths []string) ([]recipes.Contender, error) {
	var (
		all   = make([]recipes.Contender, len(paths))
		errs  = make([]error, len(paths))
		slots = make(chan struct{}, maxConcurrentReads)
		wg    sync.WaitGroup
	)
	for i, path := range paths {
		slots <- struct{}{}
		// Ends with its answer; awaited below.
		wg.Go(func() {
			defer func() { <-slots }()
			data, stat, err := c.Get(ctx, path)
			if errors.Is(err, zk.ErrNoAuth) {
				all[i] = recipes.Contender{Path: path}
				return
			}
			if err != nil {
				errs[i] = err
				return
			}
			all[i] = recipes.Contender{Path: path, Data: data, Session: stat.EphemeralOwner, Since: time.UnixMilli(stat.Ctime), Zxid: stat.Czxid}
		})
	}
	wg.Wait()
	there := all[:0]
	for i, err := range errs {
		switch {
		case err == nil:
			there = append(there, all[i])
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
	}
	return there, nil
}
