package cache

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// WatchData calls f with the znode at path, or nil if there is none, and again after each change, until f returns false: then it returns nil. Else
// it returns an error when ctx or the Client ends, or at the beginning when the server does not allow to read the znode. It goes on through lost
// connections and sessions. A slow f misses what was changed again meanwhile, never the last state. As kazoo's DataWatch, but it blocks.
func WatchData(ctx context.Context, c *recipes.Client, path string, f func(z *Znode) bool) error {
	return watch(ctx, newEngine(c, path, scope{rootData: true}), f)
}

// WatchChildren calls f with the sorted names of a znode's children, or nil if there is no such znode, and again when there are others; see
// WatchData. f may keep names. As kazoo's ChildrenWatch, which ends where there is no znode.
//
// A child that is created again under its name, or whose data change, is not noticed: Children has those.
func WatchChildren(ctx context.Context, c *recipes.Client, path string, f func(names []string) bool) error {
	first, last := true, []string(nil)
	return watch(ctx, newEngine(c, path, scope{names: true}), func(z *Znode) bool {
		var names []string
		if z != nil {
			names = append([]string{}, z.names...)
		}
		if !first && slices.Equal(names, last) && (names == nil) == (last == nil) {
			return true
		}
		first, last = false, slices.Clone(names)
		return f(names)
	})
}

// watch calls f with what the engine's first znode is, and becomes.
func watch(ctx context.Context, g *engine, f func(z *Znode) bool) error {
	c := &cache{g}
	c.Start(ctx)
	defer c.Close()
	if err := c.Wait(ctx); err != nil {
		return err
	}
	told := false
	for e := range c.Events(ctx) {
		switch {
		case e.Type == Added, e.Type == Changed, e.Type == Removed:
		case told || e.Type == Stale:
			continue
		}
		told = true
		if !f(e.New) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.Wait(ctx)
}

// PatientChildren waits until the children of a znode have stayed the same for the time quiet, and returns their names and a channel that
// gets an event or is closed when there may be others; see recipes.Client.ExistsW. Its error is zk.ErrNoNode if there is no such znode. As kazoo's
// PatientChildrenWatch.
func PatientChildren(ctx context.Context, c *recipes.Client, path string, quiet time.Duration) (names []string, fires <-chan zk.Event, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	states := c.States(ctx)
	<-states // the present one
	t := time.NewTimer(quiet)
	defer t.Stop()
	var seen *zk.Stat
	for {
		names, stat, fires, err := c.ChildrenW(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		if seen == nil || seen.Czxid != stat.Czxid || seen.Pzxid != stat.Pzxid {
			t.Reset(quiet)
		}
		seen = stat
		select {
		case <-fires:
		case <-states: // what the watch may have missed is found by reading again
		case <-t.C:
			return names, fires, nil
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}
