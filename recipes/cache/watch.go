package cache

import (
	"context"
	"slices"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// WatchData calls f with the znode at path, nil if missing, now and after each change, and returns
// nil when f returns false. Lost connections and sessions do not end WatchData. WatchData fails
// when ctx or the Client ends, and at the beginning if the server does not allow to read the znode.
// A slow f misses intermediate states, never the latest. This is kazoo's DataWatch, except that
// WatchData blocks.
func WatchData(ctx context.Context, c *recipes.Client, path string, f func(z *Znode) bool) error {
	return watch(ctx, newEngine(c, path, scope{rootData: true}), f)
}

// WatchChildren calls f with the sorted names of a znode's children, or nil if the znode is
// missing, now and whenever they change, as WatchData does. f may keep names. kazoo's ChildrenWatch
// ends when the znode is missing; WatchChildren does not.
//
// Use NewChildren to notice that a child was deleted and created again, or that its data changed.
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

// watch calls f with the root of the engine, now and after each change.
func watch(ctx context.Context, g *engine, f func(z *Znode) bool) error {
	if err := g.Start(ctx); err != nil {
		return err
	}
	defer g.Close()
	if err := g.Wait(ctx); err != nil {
		return err
	}
	called := false
	for e := range g.Events(ctx) {
		switch {
		case e.Type == Added, e.Type == Changed, e.Type == Removed:
		case called || e.Type == Stale:
			continue
		}
		called = true
		if !f(e.New) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return g.Wait(ctx)
}

// PatientChildren waits until the children of a znode have not changed for the time quiet. The
// result is their names and a channel that gets an event or is closed when they may have changed;
// see recipes.Client.ExistsW. If the znode is missing, the error is proto.ErrNoNode. This is
// kazoo's PatientChildrenWatch.
func PatientChildren(ctx context.Context, c *recipes.Client, path string, quiet time.Duration) (names []string, fires <-chan client.Event, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	states := c.States(ctx)
	<-states // the current state
	t := time.NewTimer(quiet)
	defer t.Stop()
	var seen *proto.Stat
	for {
		names, stat, fires, err := c.ChildrenW(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		if seen == nil || int64(seen.Czxid) != int64(stat.Czxid) || int64(seen.Pzxid) != int64(stat.Pzxid) {
			t.Reset(quiet)
		}
		seen = stat
		select {
		case <-fires:
		case <-states: // the watch may have missed a change, so read again
		case <-t.C:
			return names, fires, nil
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}
