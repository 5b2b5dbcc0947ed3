package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"go.etcd.io/raft/v3"
)

// position is how far a server's stream was applied. It is replicated with the state.
type position struct{ incarnation, number uint64 }

// streams knows the position of each server's stream.
type streams map[uint64]position

// accept reports whether the request is the next one of its stream and notes it. A request that was applied before, that
// follows a gap, or that a dead incarnation sent, is not accepted (C2).
func (s streams) accept(server, incarnation, number uint64) bool {
	p := s[server]
	switch {
	case incarnation > p.incarnation && number == 1, incarnation == p.incarnation && number == p.number+1:
		s[server] = position{incarnation, number}
		return true
	}
	return false
}

func (s streams) servers() []uint64 {
	ids := make([]uint64, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

// own is this server's stream: the requests that were not yet seen applied.
type own struct {
	incarnation uint64
	first       uint64 // number of pending[0]
	sent        int    // how many of pending are on their way under the current leader
	pending     []request
	resent      int64 // requests that go out once more

	// for what is lost without anybody noticing
	firstSeen uint64 // first at the last tick
	idle      int    // ticks without progress
	patience  int    // ticks to wait before all is sent again
}

type request struct {
	payload []byte
	ref     any
}

// take removes the request with that number from the head; all before it are gone already.
func (o *own) take(number uint64) (ref any, ok bool) {
	if number != o.first || len(o.pending) == 0 {
		return nil, false
	}
	ref = o.pending[0].ref
	o.pending[0] = request{}
	o.pending = o.pending[1:]
	o.first++
	o.sent = max(o.sent-1, 0)
	return ref, true
}

// again makes everything go out once more.
func (o *own) again() {
	o.resent += int64(o.sent)
	o.sent, o.idle = 0, 0
}

// renumber begins a new incarnation with what is pending: an older one is dropped from now on, wherever it is.
func (o *own) renumber(incarnation uint64) {
	o.incarnation, o.first = incarnation, 1
	o.again()
}

// leap returns an incarnation above one of an earlier life whose data is gone. That life, or one after it, may have used the next
// numbers too, in requests that are yet to come out of the log; so it is far away from them, at a place that is left to chance.
func leap(earlier, random uint64) uint64 { return earlier + 1 + random>>24 }

// skipTo drops what a checkpoint has applied, and returns its refs.
func (o *own) skipTo(p position) (lost []any) {
	for p.incarnation == o.incarnation && o.first <= p.number && len(o.pending) > 0 {
		ref, _ := o.take(o.first)
		lost = append(lost, ref)
	}
	o.again()
	return lost
}

// run returns the next requests that are not on their way, as many as fit into an entry beside size bytes of others; at least one where there are
// no others.
func (c *core) run(size int) group {
	waiting, n := c.own.pending[c.own.sent:], 0
	for ; n < len(waiting); n++ {
		bytes := len(waiting[n].payload) + requestBytes
		if size > 0 && size+bytes > maxBatchBytes {
			break
		}
		size += bytes
	}
	g := group{server: c.id, incarnation: c.own.incarnation, first: c.own.first + uint64(c.own.sent), payloads: make([][]byte, n)}
	for i := range g.payloads {
		g.payloads[i] = waiting[i].payload
	}
	return g
}

// forward sends what is pending to the leader.
func (c *core) forward(out *output) {
	for c.own.sent < len(c.own.pending) {
		g := c.run(0)
		out.messages = append(out.messages, message{to: c.leader, from: c.id, forward: &g})
		c.own.sent += len(g.payloads)
	}
}

// tickStreams sends everything again after a time without progress: a forwarded request may be lost, by the network or by
// a leader that could not propose it. The time doubles, because a leader that is only slow gets more of the same.
func (c *core) tickStreams() {
	o := &c.own
	if o.sent == 0 || o.first != o.firstSeen || c.role == raft.StateLeader {
		o.firstSeen, o.idle, o.patience = o.first, 0, electionTicks
		return
	}
	if o.idle++; o.idle >= o.patience {
		o.again()
		o.patience = min(2*o.patience, 16*electionTicks)
	}
}

const (
	// maxUnderWay is how many entries a leader has on their way at most.
	maxUnderWay = 8
	// gatherTime is for how long there is only one. Each costs messages, wake-ups, a sync and a place in the log for every member, so
	// what comes meanwhile waits and shares the next one. Where an entry takes longer, because disk or network do, that costs little beside them, and
	// waiting for its end would cost much.
	gatherTime = 2 * time.Millisecond
	gatherMs   = int64(gatherTime / time.Millisecond)
)

// gathering reports whether requests need not be looked at now, because they would only wait: for the end of an entry that is under way, which comes
// back to ready by itself, or for gatherTime to pass. after: some wait here already, and may go on when so much time has passed; 0: there are
// none, or they may not. It is of the time of the last ready, so that whoever waits was looked at with the same clock.
func (c *core) gathering() (gathers bool, after time.Duration) {
	if c.role != raft.StateLeader || c.mayMake(c.nowMs) {
		return false, 0
	}
	if c.waiting() && c.underWay < maxUnderWay {
		after = time.Duration(c.madeMs+gatherMs-c.nowMs) * time.Millisecond
	}
	return true, after
}

// waiting reports whether there are requests to make an entry of.
func (c *core) waiting() bool { return c.own.sent < len(c.own.pending) || len(c.incoming) > 0 }

// mayMake reports whether there may be another entry now.
func (c *core) mayMake(nowMs int64) bool {
	return c.underWay == 0 || c.underWay < maxUnderWay && (nowMs >= c.madeMs+gatherMs || nowMs < c.madeMs)
}

// clusterStream is the server number under which the first leader proposes what identifies the ensemble.
const clusterStream = 0

func decodeCluster(payload []byte) uint64 {
	if len(payload) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(payload)
}

// lead makes entries of what is pending here and of what others forwarded.
func (c *core) lead(nowMs int64) error {
	for c.waiting() && c.mayMake(nowMs) {
		d := c.draft()
		if len(d.groups) > 0 {
			switch err := c.node.Propose(c.encode(&d, nowMs)); {
			case errors.Is(err, raft.ErrProposalDropped):
				return nil // leadership is being handed over; a tick or its end comes back here
			case err != nil:
				return fmt.Errorf("consensus: propose: %w", err)
			}
			c.underWay++
			c.madeMs = nowMs
			c.othersFirst = !c.othersFirst
		}
		for i := range d.groups {
			c.proposed += int64(len(d.groups[i].payloads))
		}
		c.own.sent += d.mine
		c.incoming = c.incoming[d.theirs:]
		maps.Copy(c.heads, d.heads)
	}
	if len(c.incoming) == 0 {
		c.incoming = nil
	}
	return nil
}

// draft is what the next entry is made of.
type draft struct {
	groups []group
	size   int     // of their requests
	mine   int     // how many of own.pending are in it
	theirs int     // how many of incoming are in it, or of no use
	heads  streams // those behind it, of the servers of incoming
}

// draft gathers as much as fits into an entry. Own requests and those of others come first in turns: else large ones of one side could keep out the other's
// for ever.
func (c *core) draft() (d draft) {
	if c.othersFirst {
		c.draftOthers(&d)
	}
	if c.own.sent < len(c.own.pending) {
		if g := c.run(d.size); len(g.payloads) > 0 {
			d.add(g)
			d.mine = len(g.payloads)
		}
	}
	if !c.othersFirst {
		c.draftOthers(&d)
	}
	return d
}

func (c *core) draftOthers(d *draft) {
	for _, g := range c.incoming {
		if d.size > 0 && d.size+g.size() > maxBatchBytes {
			return
		}
		d.theirs++
		if !c.trim(&g, d.heads) {
			continue
		}
		if d.heads == nil {
			d.heads = make(streams)
		}
		d.heads[g.server] = position{g.incarnation, g.last()}
		d.add(g)
	}
}

func (d *draft) add(g group) {
	d.size += g.size()
	d.groups = append(d.groups, g)
}

// encode makes the entry, which holds until the next one is made: raft copies what is proposed. The first of an ensemble says what tells it from
// others.
func (c *core) encode(d *draft, nowMs int64) []byte {
	const headBytes, groupBytes = 1 + binary.MaxVarintLen64, 4 * binary.MaxVarintLen64
	entry := slices.Grow(c.entry[:0], headBytes+d.size+len(d.groups)*groupBytes)
	if c.entry = entry; cap(entry) > 2*maxBatchBytes {
		c.entry = nil
	}
	entry = appendBatchHeader(entry, nowMs)
	if c.cluster == 0 {
		id := binary.BigEndian.AppendUint64(nil, c.random()|1)
		entry = appendGroup(entry, &group{server: clusterStream, payloads: [][]byte{id}})
	}
	for i := range d.groups {
		entry = appendGroup(entry, &d.groups[i])
	}
	return entry
}

// trim cuts off the requests that are in the log already. It returns false if there is nothing left, or if the run does
// not follow on what is there: then what is between is lost, and the sender will send it all again.
func (c *core) trim(g *group, heads streams) bool {
	head := c.streams[g.server]
	for _, h := range [...]position{c.heads[g.server], heads[g.server]} {
		if h.incarnation > head.incarnation || h.incarnation == head.incarnation && h.number > head.number {
			head = h
		}
	}
	switch {
	case g.incarnation < head.incarnation:
		return false
	case g.incarnation > head.incarnation:
		return g.first == 1
	case g.first > head.number+1 || g.last() <= head.number:
		return false
	}
	g.payloads = g.payloads[head.number+1-g.first:]
	g.first = head.number + 1
	return true
}
