package server

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// sums are what is left of some values when they are noted as one.
type sums struct{ n, sum, low, top int64 }

func (s *sums) add(v int64) {
	if s.n == 0 || v < s.low {
		s.low = v
	}
	s.n, s.sum, s.top = s.n+1, s.sum+v, max(s.top, v)
}

// into notes the values, each as their mean, and forgets them.
func (s *sums) into(h *histogram) {
	if s.n > 0 {
		h.noteRun(s.sum, int(s.n), s.low, s.top)
		*s = sums{}
	}
}

// tally gathers what is to be counted of requests that are handled at once, so that each counter that all connections share is touched
// once for many of them. A burst has one, and the goroutine of Apply; its user holds conn.mu of the connection it speaks of.
type tally struct {
	received, sent    int64 // packets
	bytesIn, watching int64 // bytes that came, and of events
	replies           sums  // sizes
	lastReply         int64
	inQueue           sums // what waited on a connection when a write was applied

	runs   []run // replies that are on the output since the last settle
	n      int   // of replies in these
	queued int   // of them, reads that waited in a queue

	spaces [2]spaceTally // reads, writes
}

// spaceTally are reads or writes one after the other in one namespace.
type spaceTally struct {
	space *namespace
	sums
}

// run is a number of requests of one kind that came at the same time, and are answered at the same time.
type run struct {
	op       proto.OpCode
	queued   bool // a read that waited behind others in its connection's queue
	received time.Time
	n        int
}

// tallies are those of bursts. Each server has its own: they remember its namespaces.
type tallies struct{ pool sync.Pool }

func (p *tallies) get() *tally {
	if t, ok := p.pool.Get().(*tally); ok {
		return t
	}
	return new(tally)
}

func (p *tallies) put(t *tally) { p.pool.Put(t) }

// answered notes a reply of so many bytes.
func (t *tally) answered(op proto.OpCode, received time.Time, queued bool, size int) {
	t.sent++
	t.replies.add(int64(size))
	t.lastReply = int64(size)
	t.ran(op, received, queued)
}

// ran notes how long a request took: until the next settle.
func (t *tally) ran(op proto.OpCode, received time.Time, queued bool) {
	t.n++
	if queued {
		t.queued++
	}
	if i := len(t.runs) - 1; i >= 0 && t.runs[i].op == op && t.runs[i].queued == queued && t.runs[i].received.Equal(received) {
		t.runs[i].n++
		return
	}
	t.runs = append(t.runs, run{op, queued, received, 1})
}

// event notes a watch event of so many bytes.
func (t *tally) event(size int) {
	t.sent++
	t.watching += int64(size)
}

// read notes a read at a path and how long its answer is, wrote a write and how long the data. path is not kept.
func (t *tally) read(spaces *namespaces, path string, size int)  { t.at(0, spaces, path, size) }
func (t *tally) wrote(spaces *namespaces, path string, size int) { t.at(1, spaces, path, size) }

func (t *tally) at(which int, spaces *namespaces, path string, size int) {
	name := namespaceOf(path)
	if name == "" {
		return
	}
	s := &t.spaces[which]
	if s.space == nil || s.space.name != name {
		t.settleSpace(which)
		s.space = spaces.get(name)
	}
	s.add(int64(len(path) + size))
}

func (t *tally) settleSpace(which int) {
	if s := &t.spaces[which]; s.n > 0 {
		h := &s.space.reads
		if which == 1 {
			h = &s.space.writes
		}
		s.into(h)
	}
}

// settle adds what was gathered to the counters and is empty afterwards. now is when the replies were on the output.
func (t *tally) settle(st *stats, now time.Time) {
	st.received.more(t.received)
	st.sent.more(t.sent)
	st.bytesReceived.more(t.bytesIn)
	st.watchBytes.more(t.watching)
	t.received, t.sent, t.bytesIn, t.watching = 0, 0, 0, 0
	if r := &t.replies; r.n > 0 {
		st.responseBytes.more(r.sum)
		st.responses.noteRun(t.lastReply, r.low, r.top)
		*r = sums{}
	}
	t.inQueue.into(&st.inQueue)
	t.settleSpace(0)
	t.settleSpace(1)
	for i := range t.runs {
		r := &t.runs[i]
		took := int64(now.Sub(r.received))
		st.ops.of(r.op).note(took, r.n)
		switch {
		case r.op.Info().Write:
		case r.queued:
			st.readsQueued.note(took, r.n)
		default:
			st.readsAtOnce.note(took, r.n)
		}
	}
	if t.runs = t.runs[:0]; cap(t.runs) > 4096 { // an idle server keeps none for a rush that is over
		t.runs = nil
	}
	if t.queued > 0 {
		st.readsFromQueue.note(int64(t.queued), 1)
	}
	t.n, t.queued = 0, 0
}
