package server

import (
	"iter"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// noteSession keeps the connections and expiry of sessions in step with the replicated table. ref
// is nil unless this server proposed the request.
func (a *applier) noteSession(req *datatree.Request, res *datatree.Result, ref any, now time.Time) {
	s := a.s
	switch req.Op {
	case proto.OpCreateSession, proto.OpReattachSession:
		info, ok := s.state.tree.Session(res.SessionID)
		if res.Err != proto.OK || !ok {
			return
		}
		var c *conn
		if w, ok := ref.(*attachRequest); ok {
			c = w.conn
		} else if req.Op == proto.OpReattachSession && s.life.Serving.Load() && !s.alone() && s.node.Status().Leading {
			s.meter.Count(meter.SessionsRevalidated) // a client came to another member, which in ZooKeeper asks the leader
		}
		// Bind before updating the tracker: MoveClock must see the session as connected.
		s.conns.bind(info.ID, c)
		if req.Op == proto.OpReattachSession {
			s.endings.Attached(info.ID, req.Server)
		}
		s.sessions.expiry.Attached(info.ID, timeoutOf(info), req.Op == proto.OpCreateSession, now)
	case proto.OpCloseSession, proto.OpExpireSession:
		if res.Err == proto.ErrBadVersion { // a previous leader decided this; the present leader gave every session a new timeout
			s.sessions.expiry.Touch(req.Session, now)
		}
		if res.Err != proto.OK {
			return
		}
		s.sessions.expiry.Remove(req.Session)
		if req.Op == proto.OpExpireSession && s.life.Serving.Load() {
			s.meter.Count(meter.SessionsExpired)
			s.meter.LostSinceElection.Add(1)
		}
		// If its client ended the session, the connection closes after the reply.
		if old := s.conns.swap(req.Session, nil); old != nil && clientRequestOf(ref) == nil {
			old.closeFor(sessionMoved)
		}
	}
}

const stateReplaced = "the server took over the state of another member"

// Capture returns the changes since the last checkpoint.
func (a *applier) Capture() consensus.Changes {
	// No lock: the goroutine of Apply calls Capture, and not while another goroutine replaces a
	// state that was dropped.
	a.s.backups.capturing.Store(int64(a.s.state.tree.LastZxid()))
	return a.s.state.tree.Capture()
}

func (a *applier) CaptureAll() consensus.Changes { return a.s.state.tree.CaptureAll() }

// dropState drops the state because there is no memory for a second one, see state.drop. If release
// is called before there is another state, the server stops serving.
func (a *applier) dropState() (release func()) {
	a.s.state.drop()
	a.s.conns.drop(stateReplaced)
	return func() {
		if a.s.state.isDropped() {
			a.s.life.Serving.Store(false)
			a.s.state.unlockDropped()
		}
	}
}

// Restore makes a tree from a checkpoint. install replaces the present tree by the new tree.
func (a *applier) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := restoreTree(a.s.state.options, state)
	if err != nil {
		return nil, err
	}
	return func() { a.install(t) }, nil
}

// install replaces the state by t: at the start, or when another member has sent its state.
func (a *applier) install(t *datatree.Tree) {
	s := a.s
	s.backups.onDisk.Store(int64(t.LastZxid()))
	s.state.install(t, func() {
		if s.node != nil {
			// Watches did not fire for the skipped changes, and requests of clients may be among
			// these changes: clients must reconnect to see them. Drop the connections before the
			// lock is released: otherwise a read could show a change without its event (V3).
			s.conns.drop(stateReplaced)
		}
	})
	if s.node == nil { // the start
		return
	}
	s.sessions.adopt()
	for _, w := range a.reconfigs {
		a.auditLost(&w.clientRequest)
	}
	clear(a.reconfigs) // their connections are closed
	s.followMembers()
	s.state.wake()
}
