package contend

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// asked is how many znodes are asked for at a time.
const maxConcurrentReads = 16

// Contenders returns those who stand in the line of dir, in order: all whose names have a sequence number and that match says. Without
// such a znode there are none. Those that go meanwhile are left out.
func Contenders(ctx context.Context, c *recipes.Client, dir string, match func(name string) bool) ([]recipes.Contender, error) {
	children, _, err := c.Children(ctx, dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var paths []string
	for _, name := range recipes.Sequential(children) {
		if match == nil || match(name) {
			paths = append(paths, znodepath.Join(dir, name))
		}
	}
	return Read(ctx, c, paths)
}

// Read returns what is at paths, in that order, without those that are gone.
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
