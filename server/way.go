package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// way measures how the requests of one call of Apply came there. It belongs to the goroutine of Apply, and reads the clock as often as that
// has steps, not requests.
type way struct {
	committed time.Time // when Apply was called
	finished  time.Time // when all was applied

	// Own requests that came at the same time and follow one another in an entry.
	heard, received time.Time
	n               int

	inBatch, own int // own requests of the entry, and of all
	slow         []slowWrite
}

func (w *way) begin(now time.Time) {
	w.committed, w.own = now, 0
}

// request notes a request of a batch before it is applied.
func (w *way) request(s *Server, b *consensus.Batch, r *consensus.Request, leading bool) {
	if leading {
		n := int64(len(r.Payload))
		s.stats.proposals.noteRun(n, n, n)
	}
	p, _ := r.Ref.(*pending)
	if p == nil || p.conn == nil {
		return
	}
	w.inBatch++
	if !p.received.Equal(w.received) || !p.heard.Equal(w.heard) {
		w.run(&s.stats, b)
		w.heard, w.received = p.heard, p.received
	}
	w.n++
	if s.slow.wanted() {
		w.slow = append(w.slow, slowWrite{p, b.Proposed, b.Synced, s.state.LastZxid().Next()})
	}
}

// run notes what the last requests have in common.
func (w *way) run(st *stats, b *consensus.Batch) {
	if w.n > 0 && !b.Proposed.IsZero() {
		st.stages[stageRead].note(int64(w.received.Sub(w.heard)), w.n)
		st.stages[stageQueued].note(int64(b.Proposed.Sub(w.received)), w.n)
	}
	w.n = 0
}

// batch notes an entry that was applied.
func (w *way) batch(s *Server, b *consensus.Batch, leading bool) {
	st, n := &s.stats, len(b.Requests)
	w.run(st, b)
	if w.inBatch > 0 {
		st.waiting.note(int64(w.inBatch), 1)
		if !b.Proposed.IsZero() && !b.Synced.IsZero() {
			st.stages[stageLogged].note(int64(b.Synced.Sub(b.Proposed)), w.inBatch)
			st.stages[stageCommitted].note(int64(w.committed.Sub(b.Synced)), w.inBatch)
		}
	}
	w.own += w.inBatch
	w.inBatch = 0
	if n == 0 || b.Came.IsZero() { // it was in the log at the start: its times are those of an earlier life
		return
	}
	st.entries.note(int64(n), 1)
	sinceLeader := func(at time.Time) int64 { return (at.UnixMilli() - b.TimeMs) * int64(time.Millisecond) }
	if !s.alone() {
		switch {
		case leading:
			st.commits.Add(int64(n))
			st.quorumAcks.note(int64(w.committed.Sub(b.Came)), n)
		default:
			st.proposing.note(sinceLeader(b.Came), n)
			if !b.Synced.IsZero() {
				st.acking.note(sinceLeader(b.Synced), n)
			}
			st.committing.note(sinceLeader(w.committed), n)
		}
	}
	st.propagation.note(sinceLeader(w.committed), n)
}

// applied is when the lock is released again.
func (w *way) applied(s *Server) {
	w.finished = s.cfg.Now()
	s.tally.settle(&s.stats, w.finished)
	took := int64(w.finished.Sub(w.committed))
	s.stats.applying.note(took, 1)
	s.stats.stages[stageApplied].note(took, w.own)
}

// written is when the replies were given to the sockets: a client that does not read gets the rest later.
func (w *way) written(s *Server) {
	if w.own == 0 {
		return
	}
	now := s.cfg.Now()
	s.stats.stages[stageWritten].note(int64(now.Sub(w.finished)), w.own)
	for i := range w.slow {
		s.slow.write(w, &w.slow[i], now)
	}
	clear(w.slow)
	w.slow = w.slow[:0]
}

// countWrites notes what a request changed in which namespaces, and what quotas refused.
func (s *Server) countWrites(req *datatree.Request, res *datatree.Result, events []datatree.Event) {
	results := res.Multi
	for i := range events {
		e, size := &events[i], 0
		switch e.Type {
		case proto.EventCreated, proto.EventDataChanged:
			stat := &res.Stat
			for len(results) > 0 { // its part of a multi
				op := results[0].Op
				stat, results = &results[0].Stat, results[1:]
				if op != proto.OpDelete && op != proto.OpCheck {
					break
				}
			}
			size = int(stat.DataLength)
		case proto.EventDeleted:
		default:
			continue
		}
		s.tally.wrote(&s.stats.spaces, e.Path, size)
	}
	if res.Err == proto.ErrQuotaExceeded {
		if path, ok := requestPath(req.Op, req.Body); ok {
			if name := namespaceOf(path); name != "" {
				s.stats.spaces.get(name).overQuota.Add(1)
			}
		}
	}
}

// watchers returns where it is noted for how many connections an event was.
func (s *stats) watchers(t proto.EventType) *histogram {
	switch t {
	case proto.EventCreated:
		return &s.created
	case proto.EventDeleted:
		return &s.deleted
	case proto.EventDataChanged:
		return &s.changed
	}
	return &s.children
}

// reigned takes what it took until this server could work under another leader.
func (s *Server) reigned(r consensus.Reign) {
	st := &s.stats
	st.elections.note(int64(r.Searched), 1)
	if r.Unavailable > 0 {
		st.unavailable.note(int64(r.Unavailable), 1)
		if r.Leading {
			st.leaderUnavailable.note(int64(r.Unavailable), 1)
		}
	}
	switch {
	case r.Leading:
	case r.Voter:
		st.followerSyncs.note(int64(r.CaughtUp), 1)
	default:
		st.observerSyncs.note(int64(r.CaughtUp), 1)
	}
}

// cameAt returns when the last bytes of the connection came.
func (c *conn) cameAt() time.Time { return c.server.started.Add(time.Duration(c.heardAt.Load())) }
