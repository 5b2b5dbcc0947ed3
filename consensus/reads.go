package consensus

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// readPatience is after how many ticks without an answer a read round is asked again.
const readPatience = electionTicks / 2

// reads are what waits for a moment when this member has applied all that was committed anywhere.
type reads struct {
	waiting   []func()            // no round carries them yet
	rounds    map[uint64][]func() // by the round that carries them; at most one
	round     uint64
	age       int              // ticks since the round was asked
	confirmed []confirmedReads // rounds that are answered, waiting for apply
}

type confirmedReads struct {
	index uint64
	reads []func()
}

// read runs f once the state machine has applied all that was committed anywhere when read was called.
func (c *core) read(f func()) { c.reads.waiting = append(c.reads.waiting, f) }

// ask begins a round for all that wait. The leader answers with its commit index when a quorum has confirmed that it leads.
//
// A leader knows what was committed before its time when it has applied an entry of its own term. Raft itself waits for
// that too, but not where there is only one voter.
func (c *core) ask() {
	r := &c.reads
	if len(r.waiting) == 0 || len(r.rounds) > 0 || !c.current() {
		return
	}
	r.round++
	r.age = 0
	r.rounds[r.round] = r.waiting
	r.waiting = nil
	// Raft knows rounds by these bytes alone, so they name who asks, and in which life.
	ctx := binary.BigEndian.AppendUint64(nil, c.id)
	ctx = binary.BigEndian.AppendUint64(ctx, c.own.incarnation)
	c.node.ReadIndex(binary.BigEndian.AppendUint64(ctx, r.round))
}

// confirm: the round's reads may run once its index is applied.
func (c *core) confirm(rs raft.ReadState) {
	if len(rs.RequestCtx) != 24 || binary.BigEndian.Uint64(rs.RequestCtx) != c.id ||
		binary.BigEndian.Uint64(rs.RequestCtx[8:]) != c.own.incarnation {
		return
	}
	round := binary.BigEndian.Uint64(rs.RequestCtx[16:])
	if reads, ok := c.reads.rounds[round]; ok {
		delete(c.reads.rounds, round)
		c.reads.confirmed = append(c.reads.confirmed, confirmedReads{rs.Index, reads})
	}
}

// askAgain puts the reads of a round that may be lost in front of those that wait. A late answer to it is ignored.
func (c *core) askAgain() {
	r := &c.reads
	for round, reads := range r.rounds {
		r.waiting = append(reads, r.waiting...)
		delete(r.rounds, round)
	}
}

func (c *core) tickReads() {
	if len(c.reads.rounds) == 0 {
		return
	}
	if c.reads.age++; c.reads.age >= readPatience {
		c.askAgain()
	}
}

// release hands out the reads whose index is applied with this output's batches.
func (c *core) release(out *output) {
	kept := c.reads.confirmed[:0]
	for _, r := range c.reads.confirmed {
		if r.index <= c.applied {
			out.reads = append(out.reads, r.reads...)
		} else {
			kept = append(kept, r)
		}
	}
	clear(c.reads.confirmed[len(kept):])
	c.reads.confirmed = kept
}
