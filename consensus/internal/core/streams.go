package core

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// StreamPosition is how far a server's stream was applied, and is replicated with the state.
type StreamPosition struct{ Incarnation, Number uint64 }

// Streams holds the position of each server's stream.
//
// A stream is one server in one incarnation. The incarnation is unique to a start, grows, and is on
// disk before the first request leaves; it comes from the clock, because the directory may be a
// copy. A server resends everything from its first unapplied request on when the leader, this
// server's role, the term or the connection changes, when another member's checkpoint was installed
// here, and when nothing came back for an election timeout, unless the leader says that requests
// are arriving, or are in its log. A leader proposes nothing before it has applied an entry of its
// own term. From then on it knows which part of each stream is in the log and cuts that off: copies
// cost the network, not the disk.
//
// A server that returns without data and sees a request of itself applied under a later incarnation
// moves past that and renumbers its pending requests. To a server that had data this proves that
// its directory is older than its acknowledgements (pastLife).
type Streams map[uint64]StreamPosition

// accept reports whether the request is the next of its stream, and if so notes it. A request that
// was applied before, that follows a gap, or is of an old incarnation is not accepted (C2).
func (s Streams) accept(server, incarnation, number uint64) bool {
	p := s[server]
	switch {
	case incarnation > p.Incarnation && number == 1, incarnation == p.Incarnation && number == p.Number+1:
		s[server] = StreamPosition{incarnation, number}
		return true
	}
	return false
}

func (s Streams) servers() []uint64 { return slices.Sorted(maps.Keys(s)) }

// ownStream is this server's stream: its requests that were not applied yet.
type ownStream struct {
	incarnation uint64
	first       uint64 // number of pending[0]
	sent        int    // the first sent requests of pending are under way to the current leader
	pending     []pendingRequest
	array       []pendingRequest // that of pending, as a whole; the part before pending is free
	resent      int64            // counts requests that were sent again

	// For the detection of requests that were lost silently.
	firstSeen  uint64 // first at the last tick
	idle       int    // ticks without progress
	logged     uint64 // requests up to this number are in the log of the present leader
	retryAfter int    // ticks without progress after which everything is sent again
}

type pendingRequest struct {
	payload []byte
	ref     any
}

// add appends a request. At the end of a mostly free array the requests move to its beginning:
// otherwise each array would serve only as many requests as it has room for.
func (o *ownStream) add(r pendingRequest) {
	if n := len(o.pending); n == cap(o.pending) {
		if 2*n < len(o.array) {
			o.pending = o.array[:copy(o.array, o.pending)]
			clear(o.array[n:])
		} else {
			o.pending = slices.Grow(o.pending, 1)
			o.array = o.pending[:cap(o.pending)]
		}
	}
	o.pending = append(o.pending, r)
}

// take removes the request with that number from the head, and returns its ref. All requests before
// it were taken already. If the head has another number, the result is nil.
func (o *ownStream) take(number uint64) (ref any) {
	if number != o.first || len(o.pending) == 0 {
		return nil
	}
	ref = o.pending[0].ref
	o.pending[0] = pendingRequest{}
	o.pending = o.pending[1:]
	o.first++
	o.sent = max(o.sent-1, 0)
	return ref
}

// resend makes all pending requests go out again.
func (o *ownStream) resend() {
	o.resent += int64(o.sent)
	o.sent, o.idle, o.logged = 0, 0, 0
}

// renumber begins a new incarnation with the pending requests. From now on requests of the previous
// incarnation are dropped wherever they are.
func (o *ownStream) renumber(incarnation uint64) {
	o.incarnation, o.first = incarnation, 1
	o.resend()
}

// SkipIncarnations returns an incarnation above that of an earlier life whose data is lost. That
// life, or a later lost life, may have used the next incarnations too, in requests that are still
// to come out of the log. The result is therefore a random distance away.
func SkipIncarnations(earlier, random uint64) uint64 { return earlier + 1 + random>>24 }

// dropApplied drops the requests that a checkpoint has applied, and returns their refs.
func (o *ownStream) dropApplied(p StreamPosition) (lost []any) {
	for p.Incarnation == o.incarnation && o.first <= p.Number && len(o.pending) > 0 {
		lost = append(lost, o.take(o.first))
	}
	o.resend()
	return lost
}

// Propose appends a request to this server's stream. Until it is applied, payload must not change.
func (c *Core) Propose(payload []byte, ref any) {
	c.own.add(pendingRequest{payload, ref})
}

// nextRun returns the next requests that are not under way: as many as fit into an entry that holds
// size bytes of others already. With size 0 at least one request fits.
func (c *Core) nextRun(size int) RequestRun {
	waiting, n := c.own.pending[c.own.sent:], 0
	for ; n < len(waiting); n++ {
		bytes := len(waiting[n].payload) + requestBytes
		if size > 0 && size+bytes > maxBatchBytes {
			break
		}
		size += bytes
	}
	g := RequestRun{Server: c.id, Incarnation: c.own.incarnation, First: c.own.first + uint64(c.own.sent), Payloads: make([][]byte, n)}
	for i := range g.Payloads {
		g.Payloads[i] = waiting[i].payload
	}
	return g
}

func (c *Core) forwardPending(out *Output) {
	for c.own.sent < len(c.own.pending) {
		g := c.nextRun(0)
		out.Messages = append(out.Messages, Message{To: c.leader, From: c.id, Forward: &g})
		c.own.sent += len(g.Payloads)
	}
}

// tickStreams sends everything again after a time without progress: a forwarded request may be
// lost, in the network or by a leader that could not propose it. The time doubles, because a leader
// that is merely slow would get more of the same. What is arriving at the leader, or is in its log,
// is not sent again: a slow link would carry it several times.
func (c *Core) tickStreams() {
	o := &c.own
	if o.sent == 0 || o.first != o.firstSeen || o.first <= o.logged || c.role == raft.StateLeader {
		o.firstSeen, o.idle, o.retryAfter = o.first, 0, ElectionTicks
		return
	}
	if o.idle++; o.idle >= o.retryAfter {
		o.resend()
		o.retryAfter = min(2*o.retryAfter, maxRetryTicks)
	}
}

// Arriving notes that a part of a message of another member has come. The sender is alive, although
// its heartbeats wait behind that message, which may take longer than an election timeout on a slow
// link. Without Arriving the followers would elect another leader meanwhile, and then another, as
// the next one sends the same entries.
func (c *Core) Arriving(from uint64) error {
	c.Relays.arriving(from)
	m := &raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: &from, To: &c.id, Term: new(c.raftTerm)}
	switch leads := c.role == raft.StateLeader; {
	case !c.takesPart() || leads && !c.inConf(from) || !leads && from != c.leader:
		return nil
	case leads:
		c.send(c.progressOf(from))
	default:
		c.Clock.heardLeader()
		c.own.retryAfter = maxRetryTicks // what the leader says about our requests waits behind that message
		m.Type, m.Context = raftpb.MsgHeartbeat.Enum(), receiving[:]
	}
	return c.feed(m)
}

// progressOf returns a heartbeat that tells a member that a long message of it has come, or a part
// of that, and how far its stream is in the log.
func (c *Core) progressOf(member uint64) Message {
	head := c.StreamHead(member)
	return Message{To: member, From: c.id, Raft: &raftpb.Message{
		Type: raftpb.MsgHeartbeat.Enum(), To: &member, From: &c.id, Term: new(c.raftTerm),
		Context: receiving[:], LogTerm: &head.Incarnation, Index: &head.Number,
	}}
}

// accept adds a request of an entry to those of its batch if it is the next of its stream (C2).
func (c *Core) accept(server, incarnation, number uint64, payload []byte) {
	if server == clusterStream {
		if c.cluster == 0 {
			c.cluster = decodeCluster(payload)
		}
		return
	}
	if !c.streams.accept(server, incarnation, number) {
		return
	}
	if number == 1 {
		c.incarnations++
	}
	r := Request{Payload: payload}
	switch {
	case server != c.id:
	case incarnation == c.own.incarnation:
		r.Ref = c.own.take(number)
	default:
		c.SeeOwnIncarnation(incarnation)
		if incarnation > c.own.incarnation {
			c.own.renumber(SkipIncarnations(incarnation, c.random()))
		}
	}
	c.requests = append(c.requests, r)
}

// IncarnationAfter returns the incarnation of this server's stream once the checkpoint is
// installed. If the checkpoint knows the present incarnation or an older incarnation, the stream
// goes on: requests after the checkpoint may be in the log already, under its numbers. A newer
// incarnation is that of an earlier life whose data is lost.
func (c *Core) IncarnationAfter(meta *Meta) uint64 {
	if p := meta.Streams[c.id]; p.Incarnation > c.own.incarnation {
		return SkipIncarnations(p.Incarnation, c.random())
	}
	return c.own.incarnation
}

// AppendIncarnations appends, for each server, the newest incarnation with an applied request. A
// member shows them to each other member before it exchanges messages.
func (c *Core) AppendIncarnations(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(c.streams)))
	for _, id := range c.streams.servers() {
		b = appendUvarints(b, id, c.streams[id].Incarnation)
	}
	return b
}

// Incarnations counts the changes of what AppendIncarnations appends.
func (c *Core) Incarnations() uint64 { return c.incarnations }

// ReadIncarnation reads the output of AppendIncarnations, and returns the incarnation of a server;
// 0 if it is not known.
func ReadIncarnation(r *Uvarints, server uint64) (incarnation uint64) {
	for n := r.Next(); n > 0 && !r.Bad; n-- {
		if id, i := r.Next(), r.Next(); id == server {
			incarnation = i
		}
	}
	return incarnation
}

// SeeOwnIncarnation takes an incarnation of this server with a request that was applied anywhere.
func (c *Core) SeeOwnIncarnation(incarnation uint64) {
	c.Admission.seeIncarnation(incarnation, c.own.incarnation)
}
