package core

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// readRetryTicks is after how many ticks without an answer a read round is asked for again.
const readRetryTicks = ElectionTicks / 2

// reads holds the reads that wait until this member has applied everything that was committed
// anywhere when they were requested.
type reads struct {
	waiting   []func()            // not in a round yet
	rounds    map[uint64][]func() // by round number; at most one round
	round     uint64
	age       int              // ticks since the round began
	confirmed []confirmedReads // rounds with an answer, waiting for apply
}

type confirmedReads struct {
	index uint64
	reads []func()
}

// Read calls f once the state machine has applied everything that was committed anywhere at the
// time of this call.
func (c *Core) Read(f func()) { c.reads.waiting = append(c.reads.waiting, f) }

// startReadRound begins a round for all waiting reads. The leader answers with its commit index
// after a quorum has confirmed that it still leads.
//
// A leader knows everything that was committed in earlier terms once it has applied an entry of its
// own term. Raft waits for that too, except with a single voter.
func (c *Core) startReadRound() {
	r := &c.reads
	if len(r.waiting) == 0 || len(r.rounds) > 0 || !c.Current() {
		return
	}
	r.round++
	r.rounds[r.round] = r.waiting
	r.waiting = nil
	c.askReadRound()
}

// askReadRound asks for the round, which may be for the second time: the answers to both count,
// because the round's reads came before either. The way to the leader and back may take longer than
// readRetryTicks.
func (c *Core) askReadRound() {
	c.reads.age = 0
	// Raft identifies a round by these bytes alone, so they name this member and its incarnation.
	ctx := binary.BigEndian.AppendUint64(nil, c.id)
	ctx = binary.BigEndian.AppendUint64(ctx, c.own.incarnation)
	c.raft.ReadIndex(binary.BigEndian.AppendUint64(ctx, c.reads.round))
}

// readRoundConfirmed notes the answer to a round. Its reads may run once the index is applied.
func (c *Core) readRoundConfirmed(rs raft.ReadState) {
	if len(rs.RequestCtx) != readContextBytes || binary.BigEndian.Uint64(rs.RequestCtx) != c.id ||
		binary.BigEndian.Uint64(rs.RequestCtx[8:]) != c.own.incarnation {
		return
	}
	round := binary.BigEndian.Uint64(rs.RequestCtx[16:])
	if reads, ok := c.reads.rounds[round]; ok {
		delete(c.reads.rounds, round)
		c.reads.confirmed = append(c.reads.confirmed, confirmedReads{rs.Index, reads})
	}
}

// retryReadRound puts the reads of a round that is lost, because the leader or the connection to it
// has changed, in front of the waiting reads. A late answer to that round is ignored.
func (c *Core) retryReadRound() {
	r := &c.reads
	for round, reads := range r.rounds {
		r.waiting = append(reads, r.waiting...)
		delete(r.rounds, round)
	}
}

func (c *Core) tickReads() {
	if len(c.reads.rounds) == 0 {
		return
	}
	if c.reads.age++; c.reads.age >= readRetryTicks {
		c.askReadRound()
	}
}

// releaseReads hands out the reads whose index is applied with the batches of this output.
func (c *Core) releaseReads(out *Output) {
	kept := c.reads.confirmed[:0]
	for _, r := range c.reads.confirmed {
		if r.index <= c.applied {
			out.Reads = append(out.Reads, r.reads...)
		} else {
			kept = append(kept, r)
		}
	}
	clear(c.reads.confirmed[len(kept):])
	c.reads.confirmed = kept
}
