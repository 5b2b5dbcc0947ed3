package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// applier is the Server as consensus sees it: the state machine that batches are applied to. Its
// fields are owned by the goroutine of Apply.
type applier struct {
	s              *Server
	batch          meter.BatchStats
	trace          meter.ApplyTrace
	decoded        datatree.Request // the request that is being applied, if it came from another member
	identities     datatree.Identities
	free           []*clientWrite // writes that can be reused
	replied        []*conn        // touched by replies
	notified       []*conn        // touched by events
	watchers       []watch.ConnID
	reconfigs      map[proto.Zxid]*clientWrite // by serial: clients that wait for a change of the ensemble
	membersChanged bool
}

// maxLoggedReason bounds the reason of a refused write in the log, in bytes: it contains a path.
const maxLoggedReason = 2 << 10

func newApplier(s *Server) *applier {
	return &applier{
		s: s, reconfigs: make(map[proto.Zxid]*clientWrite), identities: make(datatree.Identities),
		batch: meter.NewBatchStats(&s.meter), trace: meter.NewApplyTrace(&s.meter),
	}
}

// maxHeldBytes is how many bytes of requests are applied before readers that wait go on.
const maxHeldBytes = 256 << 10

// Apply applies batches under the write lock, answers this server's own writes, and delivers
// events. The output is sent after the lock is released.
func (a *applier) Apply(batches []consensus.Batch) {
	s := a.s
	now := s.cfg.Now()
	role := a.meterRole()
	s.state.Lock()
	a.trace.Begin(now)
	held := 0 // bytes of requests under this lock
	for i := range batches {
		b := &batches[i]
		if b.NewTerm {
			s.state.tree.SetLastZxid(s.state.tree.LastZxid().NextEpoch())
			s.meter.NewTerm()
		}
		for j := range b.Requests {
			if j%prefetchWindow == 0 {
				s.state.prefetchWrites(b.Requests[j:])
			}
			r := &b.Requests[j]
			if role == meter.Leader {
				s.meter.Proposals.Record(int64(len(r.Payload)))
			}
			a.traceOwn(b, r)
			a.apply(b.TimeMs, r, now)
			if held += len(r.Payload); held >= maxHeldBytes {
				held = 0
				s.state.Unlock() // readers that wait go on
				s.state.Lock()
			}
		}
		a.trace.EndBatch(b, role)
		s.leader.digests.Note(b.Index, s.state.tree.Digest())
	}
	if invariants.Enabled {
		if err := s.state.tree.Check(); err != nil {
			panic(err)
		}
	}
	weight := s.state.tree.Weight()
	s.state.Unlock()
	s.growth.applied(weight)
	end := s.cfg.Now()
	a.batch.Settle(end)
	a.trace.Applied(end)
	if a.membersChanged {
		a.membersChanged = false
		s.followMembers() // writes a file, which must not happen under the lock
	}
	s.state.wake()
	a.flush(&a.replied) // the client that changed a znode must not wait until a thousand watchers are told
	a.trace.Written(s.cfg.Now)
	a.reuse()
	a.flush(&a.notified)
}

func (a *applier) meterRole() meter.Role {
	switch {
	case a.s.alone():
		return meter.Alone
	case a.s.node.Status().Leading:
		return meter.Leader
	}
	return meter.Follower
}

// traceOwn measures a request if one of this server's clients sent it.
func (a *applier) traceOwn(b *consensus.Batch, r *consensus.Request) {
	w := clientRequestOf(r.Ref)
	if w == nil {
		return
	}
	a.trace.Own(b, w.heard, w.received)
	if a.s.meter.Slow.Enabled() {
		a.trace.WatchSlow(b, meter.Request{
			Op: w.req.Op, Body: w.req.Body, Session: w.session(), Xid: w.xid, Client: w.conn.NetConn().RemoteAddr(),
			Heard: w.heard, Received: w.received,
		}, a.s.state.tree.LastZxid().Next())
	}
}

// reuse gives away the writes that were answered.
func (a *applier) reuse() {
	for _, w := range a.free {
		w.recycle()
	}
	clear(a.free)
	a.free = a.free[:0]
}

// request returns the request in r: the original if this server proposed the request, otherwise a
// decoded copy. A request that the leader refused has an empty payload, whoever proposed it.
func (a *applier) request(r *consensus.Request) *datatree.Request {
	if len(r.Payload) == 0 {
		a.decoded = datatree.Request{}
		return &a.decoded
	}
	if w := clientRequestOf(r.Ref); w != nil {
		return &w.req
	}
	if w, ok := r.Ref.(*serverWrite); ok {
		return &w.req
	}
	a.decoded = datatree.CommittedRequest(r.Payload, a.identities)
	return &a.decoded
}

// count records the changes of a request, also those of budgets, and its refusal by a quota.
func (a *applier) count(req *datatree.Request, res *datatree.Result, events []datatree.Event) {
	results, again := res.Multi, !a.s.life.Serving.Load()
	for i := range events {
		e, size := &events[i], 0
		err := a.s.state.noteBudget(e.Path)
		if again {
			continue
		}
		if err != nil {
			a.s.cfg.Logger.Warn("a budget is malformed", "error", err)
		}
		switch e.Type {
		case proto.EventCreated, proto.EventDataChanged:
			stat := &res.Stat
			for len(results) > 0 { // the event's part of a multi
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
		a.batch.Write(e.Path, size)
	}
	switch {
	case again: // the log is applied again after a start: an earlier process has counted
	case res.Full:
		a.s.meter.Count(meter.GrowthRefused)
	case res.Err == proto.ErrQuotaExceeded:
		a.batch.InSpace(meter.OverQuota, req.Op, req.Body)
	}
}

func (a *applier) apply(timeMs int64, r *consensus.Request, now time.Time) {
	s, req := a.s, a.request(r)
	if w, ok := r.Ref.(*clientWrite); ok && w.conn.queue.draining.Load() {
		w.conn.drainBefore(&a.batch, w)
	}
	var ending datatree.SessionInfo // the session that req may end
	ends := req.Op == proto.OpCloseSession || req.Op == proto.OpExpireSession
	if ends {
		ending, _ = s.state.tree.Session(req.Session)
	}
	res, events := s.state.tree.Apply(datatree.Header{Zxid: s.state.tree.LastZxid().Next(), TimeMs: timeMs}, req)
	if res.Why != "" && s.life.Serving.Load() { // otherwise the log is applied again after a start
		s.cfg.Logger.Warn("write refused", "op", req.Op.String(), "session", req.Session.String(),
			"reason", printable.Shortened(res.Why, maxLoggedReason))
	}
	for i := range events {
		s.state.remember(&events[i])
		a.deliver(&events[i])
	}
	a.count(req, &res, events)
	if ends && res.Err == proto.OK {
		_, own := r.Ref.(*serverWrite)
		a.noteEnded(req, ending, events, timeMs, own, now)
	}
	a.noteSession(req, &res, r.Ref, now)
	switch req.Op {
	case proto.OpReconfig, proto.OpInitConfig, proto.OpConfigDone:
		a.noteConfig(req, &res, r.Ref, now)
	}
	if s.trail.On() {
		a.audit(req, &res, events, r.Ref, now)
	}
	if res.Pending {
		return
	}
	switch w := r.Ref.(type) {
	case *clientWrite:
		a.touch(w.conn, touchedByReply)
		w.conn.complete(&a.batch, w, &res, now)
		s.conns.relieve()
		s.writes.Answered(w.place, w.received, now)
		s.writes.Release(w.bytes(), w.place)
		if w.free {
			a.free = append(a.free, w)
		}
	case *attachRequest:
		a.touch(w.conn, touchedByReply)
		if w.upgrades {
			w.conn.upgraded(w, &res)
		} else {
			w.conn.attached(&a.batch, w, &res)
		}
		s.writes.Release(w.bytes(), nil)
	case *serverWrite:
		w.finish(res)
	}
}

// lost is called by consensus for a request of this server that was applied elsewhere and came as
// part of a checkpoint, so that its result is unknown here. A client's connection is closed, like
// all connections when a checkpoint is installed.
func (a *applier) lost(ref any) {
	s := a.s
	switch w := ref.(type) {
	case *clientWrite:
		a.auditLost(&w.clientRequest)
		s.writes.Release(w.bytes(), w.place)
	case *attachRequest:
		if w.upgrades { // if the session was upgraded, the new state has it
			s.conns.locals.Upgraded(w.req.Session, false)
		}
		s.writes.Release(w.bytes(), nil)
	case *serverWrite:
		w.finish(datatree.Result{Err: errUnknownOutcome})
	}
}

// auditLost records a request whose outcome is not known here.
func (a *applier) auditLost(w *clientRequest) {
	if s := a.s; s.trail.On() {
		now := s.cfg.Now()
		w.conn.Lock()
		defer w.conn.Unlock()
		s.trail.Lost(w.audited(&w.req, &datatree.Result{Err: errUnknownOutcome}, now))
	}
}

// audit records a request that was applied. Of a request that this server proposed there is an
// event before its reply is sent, in the order in which requests are applied (A1). Every member has
// events of sessions that end and of their ephemeral znodes, as in ZooKeeper, unless the log is
// applied again after a start. events are those of Apply.
func (a *applier) audit(req *datatree.Request, res *datatree.Result, events []datatree.Event, ref any, now time.Time) {
	w := clientRequestOf(ref)
	if res.Pending || w != nil && res.Err == proto.ErrSessionMoved { // the latter is not answered
		return
	}
	switch r := w.audited(req, res, now); req.Op {
	case proto.OpCreateSession, proto.OpReattachSession, proto.OpInitConfig, proto.OpConfigDone: // see attached and noteConfig
	case proto.OpCloseSession, proto.OpExpireSession:
		if a.s.life.Serving.Load() && (w != nil || res.Err == proto.OK) {
			var ephemerals []string
			for i := range events {
				if events[i].Type == proto.EventDeleted {
					ephemerals = append(ephemerals, events[i].Path)
				}
			}
			a.s.trail.End(r, ephemerals)
		}
	default:
		if _, own := ref.(*serverWrite); w != nil || own {
			a.s.trail.Write(r)
		}
	}
}

// errUnknownOutcome is for a request of the server itself that may have been applied or not.
const errUnknownOutcome = proto.ErrConnectionLoss

// deliver puts an event on the output of every connection that watches for it and may read the
// znode. A one-shot watch is consumed even if its owner may not read the znode.
func (a *applier) deliver(e *datatree.Event) {
	s := a.s
	if s.state.watches.Empty() {
		return
	}
	a.watchers = s.state.watches.Match(a.watchers[:0], e.Type, e.Path)
	if len(a.watchers) == 0 {
		return
	}
	s.meter.Watchers(e.Type, len(a.watchers))
	frame := appendEvent(make([]byte, 0, eventBytes+len(e.Path)), e.Zxid, e.Type, e.Path)
	frame = frame[:len(frame):len(frame)]
	for _, id := range a.watchers {
		c := s.conns.get(id)
		if c == nil {
			continue
		}
		c.Lock()
		if s.state.tree.Readable(e.ACL, c.caller(c.IDs)) {
			c.Out.AppendShared(frame)
			c.stats.Sent++
			a.batch.Event(len(frame))
			c.boundOutput()
			a.touch(c, touchedByEvent)
		}
		c.Unlock()
		s.conns.relieve()
	}
}

// touch records that c has output to be sent when the write lock is released. A connection that an
// event touches before a reply does is on both lists: the second flush finds nothing left to send.
func (a *applier) touch(c *conn, by touched) {
	switch {
	case c.touched >= by:
		return
	case by == touchedByReply:
		a.replied = append(a.replied, c)
	default:
		a.notified = append(a.notified, c)
	}
	c.touched = by
}

func (a *applier) flush(list *[]*conn) {
	for _, c := range *list {
		c.touched = touchedNot
		c.FlushAsync()
	}
	clear(*list)
	*list = (*list)[:0]
}
