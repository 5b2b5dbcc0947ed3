package exchange

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// syncSessionMs is the timeout of the sessions of catchUp. It covers the start of the servers that
// another Player plays on.
const syncSessionMs = 60_000

// catchUp returns when each member of an ensemble has applied all that was committed before the
// call. Otherwise a step at one member would meet the effects of a step at another member, or not,
// by chance. ZooKeeper's leader checks quotas against what it has applied itself, so steps at one
// follower need this, too. It replies to a sync before it has applied what is committed, so the
// zxids of the replies must be equal (quota-at-once in docs/reference/differences.md).
func (p *Player) catchUp(ctx context.Context) {
	if len(p.Members) < 2 {
		return
	}
	for i := len(p.syncs); i < len(p.Members); i++ {
		c := p.dial(ctx, i)
		p.syncs = append(p.syncs, c)
		must.Doing("open a session for sync at "+p.Members[i], func() { must.Get(c.Handshake(rawclient.NewSession(syncSessionMs), p.ReplyTimeout)) })
	}
	request := rawclient.AppendRequest(nil, 1, proto.OpSync, jute.AppendString(nil, "/"))
	for deadline := time.Now().Add(p.ReplyTimeout); ; {
		switch zxids := p.syncAll(request); {
		case slices.Min(zxids) == slices.Max(zxids):
			return
		case time.Now().After(deadline):
			must.Failf("members %s stay at different zxids: %v", p.Members, zxids)
		}
	}
}

// syncAll sends a sync to each member, and returns the zxids of the replies.
func (p *Player) syncAll(request []byte) (zxids []proto.Zxid) {
	for i, c := range p.syncs {
		must.Doing("sync at "+p.Members[i], func() { must.Do(c.Write(request, p.ReplyTimeout)) })
	}
	for i, c := range p.syncs {
		must.Doing("sync at "+p.Members[i], func() {
			h, _, err := c.Next(p.ReplyTimeout)
			if must.Do(err); h.Err != proto.OK {
				must.Do(h.Err)
			}
			zxids = append(zxids, h.Zxid)
		})
	}
	return zxids
}

// Close closes the connections that the Player keeps between sequences.
func (p *Player) Close() error {
	var errs []error
	for _, c := range p.syncs {
		errs = append(errs, c.Close())
	}
	p.syncs = nil
	return errors.Join(errs...)
}

// writeMoved writes through the connection in slot, whose session was resumed at another member,
// and records whether the write is answered. ZooKeeper closes such a connection when it gets a
// write, gozkd earlier.
func (g *game) writeMoved(slot int, items *[]Item) {
	// No znode has this version: nothing changes on a server that executes the request.
	body := (&proto.SetDataRequest{Path: g.root, Version: math.MinInt32}).Append(nil)
	_ = g.conns[slot].Write(rawclient.AppendRequest(nil, 1, proto.OpSetData, body), g.ReplyTimeout) // the read shows its effect
	var ignored []Item                                                                              // events in flight: random
	note := NoteVictimClosed
	if g.awaitReply(slot, &ignored) {
		note = NoteVictimOpen
		g.drop(slot)
	}
	*items = append(*items, Item{Note: note})
}
