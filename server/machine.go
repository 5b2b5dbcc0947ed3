package server

import (
	"iter"
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/proto"
)

// machine is the Server as consensus sees it: the state machine that batches are applied to.
type machine struct{ s *Server }

// Apply applies batches under one write lock, answers the writes that came from here, delivers events, and sends what
// that put on the outputs after the lock is released.
func (m machine) Apply(batches []consensus.Batch) {
	s := m.s
	now := s.cfg.Now()
	leading := !s.alone() && s.node.Status().Leading
	s.tree.Lock()
	way := &s.way
	way.begin(now)
	for i := range batches {
		b := &batches[i]
		if b.NewTerm {
			s.state.SetLastZxid(s.state.LastZxid().NextEpoch())
			s.stats.proposals.reset()
			s.stats.lostSince.Store(0)
		}
		for j := range b.Requests {
			way.request(s, b, &b.Requests[j], leading)
			s.apply(b.TimeMs, &b.Requests[j], now)
		}
		way.batch(s, b, leading)
		s.digests.note(b.Index, s.state.Digest())
	}
	if invariants.Enabled {
		if err := s.state.Check(); err != nil {
			panic(err)
		}
	}
	s.tree.Unlock()
	way.applied(s)
	if s.membersChanged {
		s.membersChanged = false
		s.retarget() // it writes a file, which is not for under the lock
	}
	s.lastApply.Store(int64(time.Since(s.begun)))
	s.reached.wake()
	s.flushTouched(&s.replied) // who changes what a thousand watch does not wait until all of them are told
	way.written(s)
	s.reuseSpent()
	s.flushTouched(&s.notified)
}

// spentWrites are for the next writes. A write is spent when it was answered at once, as nearly all are, and the goroutine of Apply has let go of it.
var spentWrites = sync.Pool{New: func() any { return new(pending) }}

// reuseSpent gives away what was answered.
func (s *Server) reuseSpent() {
	for _, p := range s.spent {
		*p = pending{}
		spentWrites.Put(p)
	}
	clear(s.spent)
	s.spent = s.spent[:0]
}

// flushTouched sends what the connections have on their outputs, and empties the list.
func (s *Server) flushTouched(list *[]*conn) {
	for _, c := range *list {
		c.touched = touchedNot
		c.flushAsync()
	}
	clear(*list)
	*list = (*list)[:0]
}

func (s *Server) apply(timeMs int64, r *consensus.Request, now time.Time) {
	w, _ := r.Ref.(*pending)
	var req *datatree.Request
	if w != nil {
		req = &w.req
	} else {
		decoded, err := datatree.DecodeRequest(r.Payload)
		if err != nil {
			// The log's checksums passed, so this program or another version wrote it so. Skipping it would make this
			// replica differ from the others without anybody noticing.
			panic("server: request in the log: " + err.Error())
		}
		s.foreign = decoded
		req = &s.foreign
	}
	res, events := s.state.Apply(datatree.Header{Zxid: s.state.LastZxid().Next(), TimeMs: timeMs}, req)
	if res.Why != "" {
		s.cfg.Logger.Warn("write refused", "op", req.Op.String(), "session", req.Session.String(), "reason", shortened(res.Why, 4*maxLoggedPath))
	}
	for i := range events {
		s.deliver(&events[i])
	}
	s.countWrites(req, &res, events)
	s.noteSession(req, &res, w, now)
	switch req.Op {
	case proto.OpReconfig, proto.OpInitConfig, proto.OpConfigDone:
		s.noteConfig(req, &res, w, now)
	}
	switch {
	case w == nil || res.Pending:
	case w.conn != nil:
		w.conn.complete(&s.tally, w, &res, now)
		s.outstanding.release(w.bytes())
		if w.spent {
			s.spent = append(s.spent, w)
		}
	case w.applied != nil:
		w.tell(res)
	}
}

// lost is told of a request of this server that was applied elsewhere, in a checkpoint that came from there: nobody here knows
// its result. Its connection is closed, as all are when a checkpoint comes; who waits for a request of the server itself is told so.
func (s *Server) lost(ref any) {
	switch w, ok := ref.(*pending); {
	case !ok:
	case w.conn != nil:
		s.outstanding.release(w.bytes())
	case w.applied != nil:
		w.tell(datatree.Result{Err: errUnknownOutcome})
	}
}

// errUnknownOutcome is the code of a request of the server itself that may have been applied or not.
const errUnknownOutcome = proto.ErrConnectionLoss

// deliver puts an event on the output of every connection that watches for it and may read the znode. A one-shot watch is
// consumed even if its owner may not.
func (s *Server) deliver(e *datatree.Event) {
	if s.watches.Empty() {
		return
	}
	s.watchers = s.watches.Match(s.watchers[:0], e.Type, e.Path)
	if len(s.watchers) == 0 {
		return
	}
	s.stats.watchers(e.Type).note(int64(len(s.watchers)), 1)
	frame := appendEvent(make([]byte, 0, eventBytes+len(e.Path)), e.Zxid, e.Type, e.Path)
	frame = frame[:len(frame):len(frame)]
	for _, id := range s.watchers {
		s.connMu.Lock()
		c := s.conns[id]
		s.connMu.Unlock()
		if c == nil {
			continue
		}
		c.mu.Lock()
		if s.state.Readable(e.ACL, c.caller()) {
			c.appendShared(frame)
			c.sentPackets++
			s.tally.event(len(frame))
			c.boundOutput()
			s.touch(c, touchedByEvent)
		}
		c.mu.Unlock()
	}
}

// touch notes that c has output to be sent when the write lock is released. Only the goroutine of Apply calls it. A connection that an event
// touches before a reply does is on both lists: the second time it has nothing left to send.
func (s *Server) touch(c *conn, by touched) {
	switch {
	case c.touched >= by:
		return
	case by == touchedByReply:
		s.replied = append(s.replied, c)
	default:
		s.notified = append(s.notified, c)
	}
	c.touched = by
}

// noteSession keeps what the server knows of sessions in step with the replicated table.
func (s *Server) noteSession(req *datatree.Request, res *datatree.Result, w *pending, now time.Time) {
	switch req.Op {
	case proto.OpCreateSession, proto.OpReattachSession:
		if res.Err != proto.OK {
			return
		}
		info, ok := s.state.Session(res.SessionID)
		if !ok {
			return
		}
		var c *conn
		if w != nil {
			c = w.conn
		} else if req.Op == proto.OpReattachSession && !s.alone() && s.node.Status().Leading {
			s.stats.revalidated.Add(1) // a client came to another member, which in ZooKeeper asks the leader
		}
		// Bound first: a jump of the clock that the tracker's new time misses then finds the session connected.
		s.bind(info.ID, c)
		s.trackMu.Lock()
		if now.Before(s.jumped) {
			now = s.jumped
		}
		timeout := time.Duration(info.TimeoutMs) * time.Millisecond
		if req.Op == proto.OpCreateSession {
			s.tracker.Add(info.ID, timeout, now)
		} else {
			s.tracker.SetTimeout(info.ID, timeout, now)
		}
		s.trackMu.Unlock()
	case proto.OpCloseSession, proto.OpExpireSession:
		if res.Err == proto.ErrBadVersion { // decided by a leader before this one, which gives everybody a new timeout
			s.trackMu.Lock()
			s.tracker.Touch(req.Session, now)
			s.trackMu.Unlock()
		}
		if res.Err != proto.OK {
			return
		}
		s.trackMu.Lock()
		s.tracker.Remove(req.Session)
		s.trackMu.Unlock()
		if req.Op == proto.OpExpireSession {
			s.stats.expired.Add(1)
			s.stats.lostSince.Add(1)
		}
		if w == nil || w.conn == nil { // the client's connection, if it is here, closes without a word
			s.bind(req.Session, nil)
		}
	}
}

// bind makes c the connection of a session and closes the one before it, which can't do anything for it any more.
func (s *Server) bind(id proto.SessionID, c *conn) {
	s.connMu.Lock()
	old := s.bySession[id]
	if c != nil && !c.dead {
		s.bySession[id] = c
	} else {
		delete(s.bySession, id)
	}
	s.connMu.Unlock()
	if old != nil && old != c {
		old.close()
	}
}

// Capture returns what changed since the last checkpoint.
func (m machine) Capture() consensus.Changes {
	// Only the goroutine of Apply changes the tree, and it is the one that calls this.
	m.s.capturing.Store(int64(m.s.state.LastZxid()))
	return m.s.state.Capture()
}

// CaptureAll returns the whole state.
func (m machine) CaptureAll() consensus.Changes { return m.s.state.CaptureAll() }

// Restore makes a tree of a checkpoint. What it returns puts it in the place of the present one.
func (m machine) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := restoreTree(datatree.Options{TrackDirty: m.s.cfg.Dir != ""}, state)
	if err != nil {
		return nil, err
	}
	return func() { m.s.install(t) }, nil
}

// install replaces the state: at the start, or by that of another member.
func (s *Server) install(t *datatree.Tree) {
	s.checkpoint.Store(int64(t.LastZxid()))
	s.tree.Lock()
	s.state = t
	if s.node != nil {
		// Watches did not fire for what was skipped, and requests may be among it: clients must come back, and see it then. Not
		// before the lock is released, when a read would show the change without its event (V3).
		s.dropConns()
	}
	s.tree.Unlock()
	if s.node == nil { // the start
		return
	}
	s.adoptSessions()
	clear(s.reconfigs) // their connections are closed
	s.retarget()
	s.reached.wake()
}
