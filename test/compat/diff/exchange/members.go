package exchange

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

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
func (p *Player) catchUp(ctx context.Context) error {
	if len(p.Members) < 2 {
		return nil
	}
	for i := len(p.syncs); i < len(p.Members); i++ {
		c, err := p.dial(ctx, i)
		if err != nil {
			return err
		}
		p.syncs = append(p.syncs, c)
		if _, err := c.Handshake(rawclient.NewSession(syncSessionMs), p.ReplyTimeout); err != nil {
			return fmt.Errorf("open a session for sync at %s: %w", p.Members[i], err)
		}
	}
	request := rawclient.AppendRequest(nil, 1, proto.OpSync, jute.AppendString(nil, "/"))
	for deadline := time.Now().Add(p.ReplyTimeout); ; {
		zxids, err := p.syncAll(request)
		switch {
		case err != nil:
			return err
		case slices.Min(zxids) == slices.Max(zxids):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("members %s stay at different zxids: %v", p.Members, zxids)
		}
	}
}

// syncAll sends a sync to each member, and returns the zxids of the replies.
func (p *Player) syncAll(request []byte) (zxids []proto.Zxid, err error) {
	for i, c := range p.syncs {
		if err := c.Write(request, p.ReplyTimeout); err != nil {
			return nil, fmt.Errorf("sync at %s: %w", p.Members[i], err)
		}
	}
	for i, c := range p.syncs {
		frame, err := c.ReadFrame(p.ReplyTimeout)
		if err != nil {
			return nil, fmt.Errorf("sync at %s: %w", p.Members[i], err)
		}
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		if h.Decode(&d); d.Err() != nil || h.Err != proto.OK {
			return nil, fmt.Errorf("sync at %s: answered with %x", p.Members[i], frame)
		}
		zxids = append(zxids, h.Zxid)
	}
	return zxids, nil
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
