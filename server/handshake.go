package server

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// handshake answers a four-letter word, or agrees on a session. It returns false if the connection has nothing more to
// say. The error tells what was wrong with the client's bytes.
func (c *conn) handshake(in *input) (ok bool, err error) {
	s := c.server
	if err := c.nc.SetReadDeadline(time.Now().Add(s.live.Load().HandshakeTimeout)); err != nil {
		return false, nil // closed already
	}
	for in.w-in.r < 4 {
		if err := in.fill(c); err != nil {
			c.noteUnattached(err)
			return false, nil
		}
	}
	if word := string(in.buf[in.r : in.r+4]); isWord(word) {
		c.answerWord(word, in)
		return false, nil
	}
	var frame []byte
	for frame == nil {
		if frame, err = in.frame(s.cfg.MaxBuffer); err != nil {
			return false, err
		}
		if frame == nil {
			if err := in.fill(c); err != nil {
				c.noteUnattached(err)
				return false, nil
			}
		}
	}
	s.stats.connRequests.Add(1)
	s.stats.bytesReceived.Add(int64(4 + len(frame)))
	d := jute.NewDecoder(frame)
	var req proto.ConnectRequest
	req.Decode(&d)
	if d.Err() != nil {
		return false, fmt.Errorf("connect request: %w", d.Err())
	}
	if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
		return false, nil
	}
	// A silent close makes the client try the next server; an answer would cost it its session.
	if last := s.awaitZxid(req.LastZxidSeen); req.LastZxidSeen > last {
		c.logger().Info("client refused: it has seen a later state than this server", "client_zxid", req.LastZxidSeen.String(), "zxid", last.String())
		return false, nil
	}
	if !s.awaitServing() {
		s.stats.connsNotServed.Add(1)
		c.logger().Debug("client refused: this server does not serve now")
		return false, nil
	}
	return c.attach(&req)
}

// noteUnattached counts a connection that ends before it had a session.
func (c *conn) noteUnattached(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.stats.sessionless.Add(1)
	}
}

// awaitServing waits a moment for a leader, and reports whether clients are served. A request to take a session up that waits here can't be
// recalled when its client gives up: it would take the session away from wherever the client is then.
func (s *Server) awaitServing() bool {
	return s.await(func() bool { return s.ready() && s.node.Status().Current })
}

// awaitZxid waits a moment for this server to come to where the client has been on another one, and returns where it is.
func (s *Server) awaitZxid(want proto.Zxid) (last proto.Zxid) {
	s.await(func() bool {
		s.tree.RLock()
		defer s.tree.RUnlock()
		last = s.state.LastZxid()
		return last >= want || s.alone()
	})
	return last
}

// await waits up to a tick until cond holds, which it looks at when something was applied or who leads was looked at, and reports whether
// it does. A server that stops does not wait.
func (s *Server) await(cond func() bool) bool {
	if cond() {
		return true
	}
	patience := time.NewTimer(s.cfg.Tick)
	defer patience.Stop()
	for {
		changed := s.reached.changed()
		if cond() {
			return true
		}
		select {
		case <-changed:
		case <-s.ended: // Close waits for this
			return false
		case <-patience.C:
			return false
		}
	}
}

// applyWaiters wakes those who wait for the state to move on.
type applyWaiters struct {
	mu sync.Mutex
	ch chan struct{} // nil: nobody waits
}

// changed returns a channel that is closed when something was applied from now on.
func (a *applyWaiters) changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ch == nil {
		a.ch = make(chan struct{})
	}
	return a.ch
}

func (a *applyWaiters) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ch != nil {
		close(a.ch)
		a.ch = nil
	}
}

// attach proposes the session, new or taken up again, and waits until Apply has answered.
func (c *conn) attach(req *proto.ConnectRequest) (ok bool, err error) {
	s := c.server
	body := datatree.CreateSessionBody{TimeoutMs: int32(s.clampTimeout(req.TimeoutMs).Milliseconds())}
	now := s.cfg.Now()
	w := &pending{conn: c, kind: kindWrite, heard: now, received: now, hasReadOnly: req.HasReadOnly}
	w.req = datatree.Request{Session: req.SessionID, Op: proto.OpReattachSession, Server: s.cfg.MemberID}
	switch {
	case req.SessionID == 0:
		w.req.Op = proto.OpCreateSession
		if _, err := s.cfg.Rand.Read(body.Passwd[:]); err != nil {
			return false, fmt.Errorf("session password: %w", err)
		}
	case len(req.Passwd) != proto.PasswdBytes:
		c.mu.Lock()
		c.refuse(req.HasReadOnly)
		c.mu.Unlock()
		c.flush()
		return false, nil
	default:
		copy(body.Passwd[:], req.Passwd)
		s.stats.connsReattached.Add(1)
	}
	w.body = body.Passwd[:]
	w.req.Body = body.Append(nil)
	s.outstanding.take(w.bytes())
	s.node.Propose(w.req.Append(nil), w)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.session == 0 && !c.closed && !c.closeAfter {
		c.room.Wait()
	}
	return c.session != 0 && !c.closed, nil
}

func (s *Server) clampTimeout(ms int32) time.Duration {
	bounds := s.live.Load()
	return min(max(time.Duration(ms)*time.Millisecond, bounds.MinSessionTimeout), bounds.MaxSessionTimeout)
}

// established takes the result of attach's request. Called by Apply with c.mu held. The connection's goroutine is woken when the answer is
// written, and no sooner: the client sends nothing before, and Apply has the locks.
func (c *conn) established(w *pending, res *datatree.Result) {
	if c.raw == nil { // the client may want to write to its end of a pipe before it reads the answer
		c.room.Broadcast()
	}
	if c.closed {
		return
	}
	if res.Err != proto.OK {
		c.logger().Debug("session refused", "session", w.req.Session.String(), "reason", res.Err.String())
		c.refuse(w.hasReadOnly)
		return
	}
	info, ok := c.server.state.Session(res.SessionID)
	if !ok {
		panic(fmt.Sprintf("server: session %v was made and is not there", res.SessionID))
	}
	c.session, c.epoch, c.timeoutMs = res.SessionID, res.Zxid, info.TimeoutMs
	c.lastZxid = res.Zxid
	if w.req.Op == proto.OpCreateSession { // the word cons shows it like any request
		c.lastOp, c.lastXid = proto.OpCreateSession, 0
	}
	if c.server.cfg.Logger.IsDebug() {
		c.logger().Debug("session attached", "session", c.session.String(), "timeout_ms", info.TimeoutMs, "new", w.req.Op == proto.OpCreateSession)
	}
	c.appendConnectResponse(&proto.ConnectResponse{
		TimeoutMs: info.TimeoutMs, SessionID: c.session, Passwd: w.body, HasReadOnly: w.hasReadOnly,
	})
}

// refuse answers that the session is expired, was never there, or has another password: clients can't tell which. c.mu
// is held.
func (c *conn) refuse(hasReadOnly bool) {
	c.appendConnectResponse(&proto.ConnectResponse{Passwd: make([]byte, proto.PasswdBytes), HasReadOnly: hasReadOnly})
	c.finish()
}

func (c *conn) appendConnectResponse(r *proto.ConnectResponse) {
	start := len(c.out)
	c.out = endFrame(r.Append(append(c.out, 0, 0, 0, 0)), start)
	c.receivedPackets++ // the connect request
	c.server.stats.received.Add(1)
	c.sentPackets++
	c.server.stats.sent.Add(1)
	c.server.stats.responseBytes.Add(int64(len(c.out) - start))
}
