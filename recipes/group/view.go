package group

import (
	"context"
	"iter"
	"time"

	"github.com/gozkd/gozkd/recipes/cache"
)

// View is a cache of a Group's members. Start, Wait, Complete and Close are those of
// cache.Children. Safe for concurrent use.
type View struct {
	*cache.Children
}

// View returns a View of the group, which does nothing before Start. The process need not be a
// member.
func (g *Group) View() *View { return &View{cache.NewChildren(g.client, g.path)} }

// Members returns the members in the order of their znodes' creation. Their payloads must not be
// modified.
func (v *View) Members() []Member {
	all := v.All()
	members := make([]Member, len(all))
	for i, z := range all {
		members[i] = newMember(z)
	}
	return sortByAge(members)
}

// Event is a change of a View.
type Event struct {
	// Added: joined. Changed: has another payload. Removed: left, or lost its session. Complete and
	// Stale concern the whole View and have no Member.
	Type   cache.EventType
	Member Member // after the change, or of Removed before it
}

// Events returns the changes, for a range loop, until ctx or the View ends, beginning with an Added
// for each present member. A member that lost its session and joined again is Removed and Added.
// See the Events of cache.Children.
func (v *View) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range v.Children.Events(ctx) {
			if !yield(newEvent(e)) {
				return
			}
		}
	}
}

// Listen calls f with the Events, in a single goroutine, until ctx or the View ends. Close waits
// for the goroutine.
func (v *View) Listen(ctx context.Context, f func(Event)) {
	v.Children.Listen(ctx, func(e cache.Event) { f(newEvent(e)) })
}

func newEvent(e cache.Event) Event {
	switch {
	case e.New != nil:
		return Event{e.Type, newMember(e.New)}
	case e.Old != nil:
		return Event{e.Type, newMember(e.Old)}
	}
	return Event{Type: e.Type}
}

func newMember(z *cache.Znode) Member {
	return Member{z.Name(), z.Data, z.Path, z.Stat.EphemeralOwner, time.UnixMilli(z.Stat.Ctime), z.Stat.Czxid}
}
