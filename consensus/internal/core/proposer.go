package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
)

const (
	// maxInFlight is the most entries with requests that a leader has under way.
	maxInFlight = 8
	// BatchInterval is the least time between two entries, if the first is still under way. Each
	// entry costs messages, wake-ups, a sync and a record in the log of every member, so requests
	// that come meanwhile wait and share the next entry. If an entry takes longer, because the disk
	// or the network does, an extra entry costs little in comparison, and waiting for the first to
	// end would cost much.
	BatchInterval   = 2 * time.Millisecond
	batchIntervalMs = int64(BatchInterval / time.Millisecond)
	// maxRetryTicks is the most ticks without progress after which requests are sent again.
	maxRetryTicks = 16 * ElectionTicks
)

// proposer is the leader's side of the streams: it makes entries of requests.
type proposer struct {
	heads    Streams      // the last request of each other member that was proposed in this term
	incoming []RequestRun // forwarded by others, to be proposed
	inFlight int          // entries with requests that were proposed and not handed out
	nowMs    int64        // the time of the last Ready
	lastMs   int64        // when the last entry was made
	proposed int64        // counts requests that went into entries
	// othersFirst: in the next entry the requests of others come before our own.
	othersFirst bool
	buf         []byte // of the last entry, reused
	validate    func(payload []byte) error
	refused     uint64 // requests that validate refused
}

// reset forgets everything that was under way under the previous leader.
func (p *proposer) reset() { p.heads, p.incoming, p.inFlight = Streams{}, nil, 0 }

// ProposalDelay reports whether new requests need not be looked at now because they would only
// wait: until an entry under way ends, which brings the loop back to Ready by itself, or until
// BatchInterval has passed. If after is not 0, requests wait here already and may be proposed after
// that time. The answer is as of the time of the last Ready, so that the same clock applies to all
// requests.
func (c *Core) ProposalDelay() (delayed bool, after time.Duration) {
	if c.role != raft.StateLeader || c.mayPropose(c.proposer.nowMs) {
		return false, 0
	}
	if c.HasProposals() && c.proposer.inFlight < maxInFlight {
		after = time.Duration(c.proposer.lastMs+batchIntervalMs-c.proposer.nowMs) * time.Millisecond
	}
	return true, after
}

// HasProposals reports whether requests wait to go into an entry.
func (c *Core) HasProposals() bool {
	return c.own.sent < len(c.own.pending) || len(c.proposer.incoming) > 0
}

// Waiting reports whether something waits to be applied here: a request of this member or, if this
// member leads, a request of any member or the first entry of the term.
func (c *Core) Waiting() bool {
	return len(c.own.pending) > 0 || len(c.proposer.incoming) > 0 || c.proposer.inFlight > 0 || !c.Current()
}

// mayPropose reports whether another entry may be made now.
func (c *Core) mayPropose(nowMs int64) bool {
	p := &c.proposer
	return p.inFlight == 0 || p.inFlight < maxInFlight && (nowMs >= p.lastMs+batchIntervalMs || nowMs < p.lastMs)
}

// clusterStream is the server number under which the first leader proposes the ensemble's identity.
const clusterStream = 0

func decodeCluster(payload []byte) uint64 {
	if len(payload) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(payload)
}

// proposeWaiting makes entries of this member's pending requests and those that others forwarded.
func (c *Core) proposeWaiting(out *Output, nowMs int64) error {
	p := &c.proposer
	for c.HasProposals() && c.mayPropose(nowMs) {
		d := c.draft()
		if len(d.runs) > 0 {
			switch err := c.raft.Propose(c.encode(&d, nowMs)); {
			case errors.Is(err, raft.ErrProposalDropped):
				return nil // leadership is being handed over; a tick or its end comes back here
			case err != nil:
				return fmt.Errorf("consensus: propose: %w", err)
			}
			p.inFlight++
			p.lastMs = nowMs
			p.othersFirst = !p.othersFirst
		}
		c.own.sent += d.own
		p.incoming = p.incoming[d.incoming:]
		maps.Copy(p.heads, d.heads)
		for i := range d.runs {
			g := &d.runs[i]
			if p.proposed += int64(len(g.Payloads)); g.Server != c.id && g.size() >= maxBatchBytes/64 { // long
				out.Messages = append(out.Messages, c.progressOf(g.Server)) // before the entry
			}
		}
	}
	if len(p.incoming) == 0 {
		p.incoming = nil
	}
	return nil
}

type entryDraft struct {
	runs     []RequestRun
	size     int     // of the requests
	own      int     // requests of own.pending in the entry
	incoming int     // runs of proposer.incoming that are in the entry, or dropped because they are known
	heads    Streams // positions after the entry, of the servers of incoming
}

// draft collects as much as fits into an entry. Own requests and those of others take turns in
// coming first; otherwise large requests of one side could keep out the other side's for ever.
func (c *Core) draft() (d entryDraft) {
	if c.proposer.othersFirst {
		c.draftIncoming(&d)
	}
	if g := c.nextRun(d.size); len(g.Payloads) > 0 {
		c.refuseInvalid(&g)
		d.add(g)
		d.own = len(g.Payloads)
	}
	if !c.proposer.othersFirst {
		c.draftIncoming(&d)
	}
	return d
}

func (c *Core) draftIncoming(d *entryDraft) {
	for _, g := range c.proposer.incoming {
		if d.size > 0 && d.size+g.size() > maxBatchBytes {
			return
		}
		d.incoming++
		if !c.trimKnown(&g, d.heads) {
			continue
		}
		if d.heads == nil {
			d.heads = make(Streams)
		}
		d.heads[g.Server] = StreamPosition{g.Incarnation, g.Last()}
		c.refuseInvalid(&g)
		d.add(g)
	}
}

// refuseInvalid empties the payloads of requests that the state machine does not understand. A
// refused request keeps its number, so its stream has no gap, and its member learns of the refusal
// when the request is applied.
func (c *Core) refuseInvalid(g *RequestRun) {
	p := &c.proposer
	if p.validate == nil {
		return
	}
	copied := false
	for i, payload := range g.Payloads {
		err := p.validate(payload)
		if err == nil {
			continue
		}
		if p.refused++; p.refused&(p.refused-1) == 0 { // a broken member must not fill the disk with log lines
			c.logger.Errorf("request %d of member %d refused before it enters the log (refused so far: %d): %v",
				g.First+uint64(i), number(g.Server), p.refused, err)
		}
		if !copied { // the payloads may belong to the message
			g.Payloads, copied = slices.Clone(g.Payloads), true
		}
		g.Payloads[i] = nil
	}
}

func (d *entryDraft) add(g RequestRun) {
	d.size += g.size()
	d.runs = append(d.runs, g)
}

// encode returns the entry, which is valid until the next call: raft copies it. The first entry of
// an ensemble also carries the number that identifies the ensemble.
func (c *Core) encode(d *entryDraft, nowMs int64) []byte {
	const headBytes, runBytes = 1 + binary.MaxVarintLen64, 4 * binary.MaxVarintLen64
	entry := slices.Grow(c.proposer.buf[:0], headBytes+d.size+len(d.runs)*runBytes)
	if c.proposer.buf = entry; cap(entry) > maxBatchBytes/4 {
		c.proposer.buf = nil
	}
	entry = appendBatchHeader(entry, nowMs)
	if c.cluster == 0 {
		id := binary.BigEndian.AppendUint64(nil, c.random()|1)
		entry = appendRun(entry, &RequestRun{Server: clusterStream, Payloads: [][]byte{id}})
	}
	for i := range d.runs {
		entry = appendRun(entry, &d.runs[i])
	}
	return entry
}

// StreamHead returns how far a server's stream stands in the log, as far as this member knows:
// applied, or proposed here in this term.
func (c *Core) StreamHead(server uint64) StreamPosition {
	return later(c.streams[server], c.proposer.heads[server])
}

func later(a, b StreamPosition) StreamPosition {
	if b.Incarnation > a.Incarnation || b.Incarnation == a.Incarnation && b.Number > a.Number {
		return b
	}
	return a
}

// trimKnown cuts off the requests that are in the log already, and returns false if nothing is
// left, or if the run does not follow on the log: then the requests in between are lost, and the
// sender will send them all again.
func (c *Core) trimKnown(g *RequestRun, heads Streams) bool {
	head := later(c.StreamHead(g.Server), heads[g.Server])
	switch {
	case g.Incarnation < head.Incarnation:
		return false
	case g.Incarnation > head.Incarnation:
		return g.First == 1
	case g.First > head.Number+1 || g.Last() <= head.Number:
		return false
	}
	g.Payloads = g.Payloads[head.Number+1-g.First:]
	g.First = head.Number + 1
	return true
}
