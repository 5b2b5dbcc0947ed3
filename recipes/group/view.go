package group

import (
	"context"
	"iter"
	"time"

	"github.com/gozkd/gozkd/recipes/cache"
)

// View is a copy of who is in a Group that follows it, so that nobody needs to be asked. Safe for concurrent use.
type View struct {
	children *cache.Children
}

// View returns a View of the group. It does nothing before Start. It needs no membership.
func (g *Group) View() *View { return &View{cache.NewChildren(g.client, g.path)} }

// Start lets it begin, and does not wait. It runs until ctx ends or it is closed.
func (v *View) Start(ctx context.Context) { v.children.Start(ctx) }

// Wait waits until it is complete; see cache.Children.
func (v *View) Wait(ctx context.Context) error { return v.children.Wait(ctx) }

// Complete reports whether it is complete: not from the loss of the connection until all was read again.
func (v *View) Complete() bool { return v.children.Complete() }

// Close ends it, and waits until nothing of it runs. What it has can still be read.
func (v *View) Close() { v.children.Close() }

// Members returns the members, in the order in which they have joined. Their payloads may not be changed.
func (v *View) Members() []Member {
	all := v.children.All()
	members := make([]Member, len(all))
	for i, z := range all {
		members[i] = member(z)
	}
	return byAge(members)
}

// Event is a step of what a View shows.
type Event struct {
	Type   cache.EventType // Added: joined; Changed: the payload; Removed: left, or its session was lost; Complete and Stale have no Member
	Member Member          // as it is now, or as it was
}

// Events returns what happens, for a range loop, until ctx or the View ends; it begins with those who are members then. A member that was lost
// and came back is Removed and Added. See cache.Children.
func (v *View) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range v.children.Events(ctx) {
			if !yield(event(e)) {
				return
			}
		}
	}
}

// Listen calls f with the Events, on one goroutine, until ctx or the View ends. Close waits for it.
func (v *View) Listen(ctx context.Context, f func(Event)) {
	v.children.Listen(ctx, func(e cache.Event) { f(event(e)) })
}

func event(e cache.Event) Event {
	switch {
	case e.New != nil:
		return Event{e.Type, member(e.New)}
	case e.Old != nil:
		return Event{e.Type, member(e.Old)}
	}
	return Event{Type: e.Type}
}

func member(z *cache.Znode) Member {
	return Member{z.Name(), z.Data, z.Path, z.Stat.EphemeralOwner, time.UnixMilli(z.Stat.Ctime), z.Stat.Czxid}
}
