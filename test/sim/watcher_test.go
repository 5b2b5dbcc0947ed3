package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// A watcher has a recursive watch on a znode that all watchers change, and goes from member to
// member. It must get each change exactly once and in order, or be told that it may have missed
// some: the versions of the znode say how many changes there were.
type watcher struct {
	w    *world
	name string
	rng  *rand.Rand

	mu       sync.Mutex // guards the fields below
	data     []proto.Zxid
	children []proto.Zxid
	missed   int         // how often events may be missing
	base     *proto.Stat // events since then are complete; nil: not known
}

const watched = "/watched"

// run watches until stop is closed.
func (v *watcher) run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel()
	both.Go(func() { // ends with run
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for ctx.Err() == nil {
		c, err := client.Connect(ctx, client.Config{
			Servers: v.w.addresses(), SessionTimeout: sessionTimeout, OnEvent: v.event,
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return v.w.dial(ctx, clientHost(v.name), address)
			},
		})
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		v.watch(ctx, c)
		c.Detach()
	}
}

// watch uses a session until it ends.
func (v *watcher) watch(ctx context.Context, c *client.Client) {
	v.mu.Lock()
	v.data, v.children, v.base = nil, nil, nil
	v.mu.Unlock()
	_, _, _ = c.Create(ctx, watched, nil, client.CreateOptions{}) // it may be there
	if c.AddWatch(ctx, watched, proto.AddWatchPersistentRecursive) != nil {
		return
	}
	for i := 0; c.Err() == nil && ctx.Err() == nil; i++ {
		child := fmt.Sprintf("%s/%s-%d", watched, v.name, i%3)
		switch v.rng.IntN(8) {
		case 0, 1:
			_, _ = c.Set(ctx, watched, nil, client.AnyVersion) // the check does not depend on the outcome of writes
		case 2:
			_, _, _ = c.Create(ctx, child, nil, client.CreateOptions{})
		case 3:
			_ = c.Delete(ctx, child, client.AnyVersion)
		case 4:
			c.Reconnect()
		default:
			v.look(ctx, c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(between(v.rng, 0, 2*time.Second) + v.w.rest(v.rng)):
		}
	}
}

// event notes an event.
func (v *watcher) event(e client.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := &v.children
	switch {
	case e.Type == client.EventSession:
		switch {
		case e.State != client.Connected:
		case e.CaughtUp:
			v.w.caughtUp.Add(1)
		default:
			v.missed++
			v.base = nil
			v.w.missed.Add(1)
		}
		return
	case e.Path == watched && e.Type == proto.EventDataChanged:
		list = &v.data
	case e.Path == watched || e.Type == proto.EventDataChanged:
		return
	}
	if n := len(*list); n > 0 && (*list)[n-1] >= e.Zxid {
		v.w.complain("%s: %v of %s with zxid %v after one with %v", v.name, e.Type, e.Path, e.Zxid, (*list)[n-1])
	}
	*list = append(*list, e.Zxid)
}

// look compares the events with the versions of the znode: events come before the reply.
func (v *watcher) look(ctx context.Context, c *client.Client) {
	v.mu.Lock()
	missed := v.missed
	v.mu.Unlock()
	_, st, err := c.Get(ctx, watched, false)
	if err != nil || c.AwaitEvents(ctx) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.missed != missed {
		return
	}
	if old := v.base; old != nil {
		v.w.watched.Add(int64(st.Version - old.Version + st.Cversion - old.Cversion))
		v.compare("changes", v.data, old.Mzxid, st.Mzxid, st.Version-old.Version)
		v.compare("children", v.children, old.Pzxid, st.Pzxid, st.Cversion-old.Cversion)
	}
	v.base = &st
}

// compare compares the number of events with the number of changes.
func (v *watcher) compare(what string, events []proto.Zxid, after, last proto.Zxid, want int32) {
	n := int32(0)
	for _, z := range events {
		if z > after && z <= last {
			n++
		}
	}
	if n != want {
		v.w.complain("%s got %d events of %d %s between %v and %v", v.name, n, want, what, after, last)
	}
}
