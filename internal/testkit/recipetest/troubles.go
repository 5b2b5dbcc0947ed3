package recipetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Trouble is a disturbance of a World.
type Trouble struct {
	What   string        // see World.Apply
	After  time.Duration // after the end of the previous trouble
	Member int           // from 1
	Client int           // from 0, in the order in which the World made them
	Lasts  time.Duration
}

func (x Trouble) String() string {
	return fmt.Sprintf("%v later %s, member %d, client %d, for %v", x.After, x.What, x.Member, x.Client, x.Lasts)
}

// Troubles draws up to eight troubles for a World with this many members. The simplest is a lost
// reply.
func Troubles(members int) *rapid.Generator[[]Trouble] {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Trouble {
		// Few last long enough to end a session.
		lasts := rapid.OneOf(rapid.IntRange(1, 3000), rapid.IntRange(1, 3000), rapid.IntRange(1, 30000)).Draw(rt, "lasts")
		return Trouble{
			What: rapid.SampledFrom([]string{
				"drop", "drop", "delay", "disconnect", "expire", "unplug", "kill", "pause", "partition", "leader",
			}).Draw(rt, "what"),
			After:  time.Duration(rapid.IntRange(0, 800).Draw(rt, "after")) * time.Millisecond,
			Member: rapid.IntRange(1, members).Draw(rt, "member"),
			Client: rapid.IntRange(0, 9).Draw(rt, "client"),
			Lasts:  time.Duration(lasts) * time.Millisecond,
		}
	}), 0, 8)
}

// Apply applies troubles in order on the calling goroutine. Each ends before the next begins, and
// all have ended when Apply returns:
//
//	drop        the reply to the next request of any client is lost; the request is applied
//	delay       the next request of any client is delayed
//	disconnect  the clients of a member lose their connections
//	expire      a client's session ends
//	unplug      a client has no connection; see World.Unplug
//	kill        a member is down
//	pause       a member's process is stopped
//	partition   a member is cut off from the other members
//	leader      the leader is down
//
// All clocks run at the same rate, which the Context of a session relies on.
func (w *World) Apply(all []Trouble) {
	w.t.Helper()
	for _, x := range all {
		time.Sleep(x.After)
		w.apply(x)
		w.faults.Add(1)
	}
	w.ClearFaults()
}

func (w *World) apply(x Trouble) {
	w.t.Helper()
	m := w.Member(x.Member)
	lasting := func(begin, end func()) {
		begin()
		time.Sleep(x.Lasts)
		end()
	}
	switch x.What {
	case "drop":
		w.DropReply(zktest.Any)
	case "delay":
		w.Delay(zktest.Any, x.Lasts)
	case "disconnect":
		m.Disconnect()
	case "expire":
		if c := w.client(x.Client); c != nil {
			// An error means that the session has ended already.
			_ = w.Leader().Server().ExpireSession(w.t.Context(), c.Session().ID())
		}
	case "unplug":
		if c := w.client(x.Client); c != nil {
			lasting(func() { w.Unplug(c) }, func() { w.Plug(c) })
		}
	case "kill":
		lasting(m.Kill, m.Start)
	case "pause":
		lasting(m.Pause, m.Resume)
	case "partition":
		lasting(m.Partition, m.Heal)
	case "leader":
		leader := w.Leader()
		lasting(leader.Kill, leader.Start)
	default:
		w.t.Fatalf("recipetest: no trouble is called %q", x.What)
	}
}

// client returns the n-th client, modulo their number; nil if there are none.
func (w *World) client(n int) *recipes.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.clients) == 0 {
		return nil
	}
	return w.clients[n%len(w.clients)]
}
