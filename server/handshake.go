package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/fourletter"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// newcomer is a connection that has no session yet: its TLS handshake, then a four-letter word or
// its connect request, on the goroutine that reads the connection.
type newcomer struct {
	*conn
	in *link.Input
}

// handshake answers a four-letter word, or asks for a session. handshake returns false if the
// connection is to be closed. err is the reason if the client's bytes were malformed. The deadline
// of reads stays.
func (c newcomer) handshake() (ok bool, err error) {
	s := c.server
	c.in.SetSmall(true) // thousands of unfinished handshakes must cost little
	defer func() { c.in.SetSmall(false) }()
	if err := c.NetConn().SetReadDeadline(time.Now().Add(s.live.Load().HandshakeTimeout)); err != nil {
		return false, nil // closed already
	}
	if !c.begins() {
		return false, nil
	}
	if word := string(c.in.Bytes()[:4]); fourletter.Is(word) {
		c.answerWord(word)
		return false, nil
	}
	frame, err := c.connectRequest()
	if frame == nil {
		return false, err
	}
	s.meter.Add(meter.BytesReceived, int64(4+len(frame)))
	d := jute.NewDecoder(frame)
	var req proto.ConnectRequest
	req.Decode(&d)
	if d.Err() != nil {
		return false, fmt.Errorf("connect request: %w", d.Err())
	}
	if c.throttled(&req) || !c.admitted(&req) {
		return false, nil
	}
	s.meter.Count(meter.ConnectRequests)
	readOnly := s.leader.readOnly.Load() // when that ends, c is closed
	if readOnly && !req.ReadOnly {
		s.meter.Count(meter.NotServed)
		c.noteTurnedAway(&req, "that server was read-only, which the client does not accept")
		c.logger().Debug("client refused: this server is read-only, which the client does not accept")
		return false, nil
	}
	// A silent close leads the client to the next server; an answer would cost it its session.
	if last := s.awaitZxid(req.LastZxidSeen); req.LastZxidSeen > last {
		c.noteTurnedAway(&req, "that server's state was older than what the client had seen")
		c.logger().Info("client refused: it has seen a later state than this server", "client_zxid", req.LastZxidSeen.String(), "zxid", last.String())
		return false, nil
	}
	// A request to re-attach must not wait longer than s.await does: when the client gives up, the
	// request cannot be recalled, and would take the session away from the server that the client
	// has found by then.
	if (!readOnly || s.state.isDropped()) && (!s.await(s.serves) || s.leader.leavesClients(s.node.Status())) {
		s.meter.Count(meter.NotServed)
		c.noteTurnedAway(&req, "that server did not serve clients then")
		c.logger().Debug("client refused: this server does not serve now, or leads and leaves clients to the others")
		return false, nil
	}
	if !c.awaitAudit(c.in) {
		return false, nil
	}
	// A server that has lost the quorum forgets its local sessions when it becomes read-only. A
	// client that accepts a read-only server must not get a session that is about to be forgotten,
	// so it waits for a quorum, or until its connection is closed.
	mayForget := !readOnly && s.live.Load().ReadOnlyMode
	if mayForget && req.ReadOnly && req.SessionID == 0 && s.sessions.opensLocal() && !c.awaitCurrent() {
		return false, nil
	}
	if ok, done, err := c.attachLocal(&req, readOnly); done {
		return ok, err
	}
	return c.attach(&req)
}

// begins waits for the first 4 bytes. It returns false if the connection ends before.
func (c newcomer) begins() bool {
	for c.in.Len() < 4 {
		if err := c.in.Fill(&c.Link); err != nil {
			c.noteUnattached(err)
			return false
		}
	}
	return true
}

// connectRequest returns the first frame, or nil if the connection is to be closed.
func (c newcomer) connectRequest() (frame []byte, err error) {
	const limit = link.SmallBytes - 4
	in := c.in
	for frame == nil {
		at := in.At()
		frame, err = in.Frame(limit)
		switch {
		case err != nil:
			switch speaks := accept.Protocol(in.Bytes()); {
			case speaks == "TLS" && !c.Secured():
				err = errors.New("the client speaks TLS, and this port does not: connect to the port for TLS " +
					"(secureClientPort), or set client.portUnification=true")
			case speaks == "HTTP":
				err = errors.New("the client speaks HTTP, and this is the port of ZooKeeper's clients: " +
					"connect to a port for HTTP (admin.serverPort, metricsProvider.httpPort)")
			case bytes.HasPrefix(in.Bytes(), []byte(neterr.MemberMagic[:4])):
				err = errors.New("the client is another server, and this is not the port for servers: " +
					"correct the port of this server in its server lines")
			}
			return nil, fmt.Errorf("connect request: %w", err)
		case frame == nil:
			if err := in.Fill(&c.Link); err != nil {
				c.noteUnattached(err)
				return nil, nil
			}
		case c.stoodStill():
			if in.Back(at); in.Ended(&c.Link) {
				return nil, nil // a claim could take the session from the server that the client has found by now
			}
			return in.Frame(limit)
		}
	}
	return frame, nil
}

// stoodStill reports whether this process stood still a moment ago, so that the client may have
// given up its handshake, or had no time left for the handshake.
func (c newcomer) stoodStill() bool {
	return c.server.standstill.Recent(time.Now(), c.server.live.Load().HandshakeTimeout)
}

// noteUnattached counts a connection that ends before it has a session.
func (c newcomer) noteUnattached(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.stoodStill() {
		c.server.meter.Count(meter.Sessionless)
	}
}

// awaitZxid waits a moment for this server to reach the zxid that the client has seen on another
// server, and returns the last zxid of this server.
func (s *Server) awaitZxid(want proto.Zxid) (last proto.Zxid) {
	s.await(func() bool {
		last = s.state.lastZxid()
		return last >= want || s.alone()
	})
	return last
}

// await waits up to a tick until cond holds, and reports whether cond holds. cond is checked when
// something was applied and when the leader was checked. A server that stops does not wait.
func (s *Server) await(cond func() bool) bool {
	if cond() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Tick)
	defer cancel()
	return s.state.await(ctx, &s.life, "", cond) == nil // Close waits for this goroutine
}

// attach proposes to create or to re-attach a session. Apply answers (attached), and serve waits.
func (c newcomer) attach(req *proto.ConnectRequest) (ok bool, err error) {
	s := c.server
	body := datatree.CreateSessionBody{TimeoutMs: int32(s.clampTimeout(req.TimeoutMs).Milliseconds())}
	now := s.cfg.Now()
	w := &attachRequest{clientRequest: clientRequest{conn: c.conn, heard: now, received: now}, hasReadOnly: req.HasReadOnly}
	w.req = datatree.Request{Session: req.SessionID, Op: proto.OpReattachSession, Server: s.cfg.MemberID}
	if req.SessionID == 0 {
		w.req.Op = proto.OpCreateSession
		if w.req.Session, body.Passwd, err = s.sessions.newSession(); err != nil {
			return false, err
		}
	} else {
		s.meter.Count(meter.SessionsReattached)
		switch verdict, story := c.judge(req.SessionID, req.Passwd, now); verdict {
		case liveness.Unanswered:
			return false, nil
		case liveness.Refused:
			c.refuseClaim(req, story, now)
			return false, nil
		}
		copy(body.Passwd[:], req.Passwd)
	}
	w.passwd = body.Passwd[:]
	w.req.Body = body.Append(nil)
	s.writes.Take(w.bytes())
	s.node.Enqueue(w.req.Append(nil), w)
	s.node.Drive(c.lone())
	return true, nil
}

func (s *Server) clampTimeout(ms int32) time.Duration {
	bounds := s.live.Load()
	return min(max(time.Duration(ms)*time.Millisecond, bounds.MinSessionTimeout), bounds.MaxSessionTimeout)
}

// attached takes the result of attach's request. Apply calls attached under the tree's write lock.
// The goroutine that waits in serve is not woken here but when the answer is written: until then
// the client sends nothing, and Apply has the locks.
func (c *conn) attached(b *meter.BatchStats, w *attachRequest, res *datatree.Result) {
	c.Lock()
	defer c.Unlock()
	b.Ran(w.req.Op, w.received, false)
	if !c.IsSocket() { // the client may want to write to its end of a pipe before it reads the answer
		c.Wake()
	}
	if c.ClosedLocked() {
		return
	}
	if res.Err != proto.OK {
		c.server.trail.Session(c, w.req.Op, w.req.Session, res.Err, res.Zxid)
		c.logger().Debug("session refused", "session", w.req.Session.String(), "reason", res.Err.String())
		if res.Err == proto.ErrQuotaExceeded { // the state is full: the client should try again, later
			time.AfterFunc(c.server.refusals.Charge(c.Host(), w.bytes(), c.server.clampTimeout(0), time.Now()), c.Close)
			return
		}
		story := c.server.endings.Told(w.req.Session, w.passwd)
		if c.refuse(w.hasReadOnly, story); story == nil && w.req.Op == proto.OpReattachSession {
			c.noteRefused(w.req.Session, res.Err == proto.ErrAuthFailed, w.received)
		}
		_ = c.NetConn().SetReadDeadline(time.Now()) // wakes serve; fails if the connection is closed
		return
	}
	info, ok := c.server.state.tree.Session(res.SessionID)
	if !ok {
		panic(fmt.Sprintf("server: session %v was created and is not in the tree", res.SessionID))
	}
	c.session, c.epoch, c.timeoutMs = res.SessionID, res.Zxid, info.TimeoutMs
	c.stats.LastZxid = res.Zxid
	c.server.trail.Session(c, w.req.Op, c.session, proto.OK, res.Zxid)
	if w.req.Op == proto.OpCreateSession { // the word cons shows it like any request
		c.stats.LastOp, c.stats.LastXid = proto.OpCreateSession, 0
	}
	if c.server.cfg.Logger.IsDebug() {
		c.logger().Debug("session attached", "session", c.session.String(), "timeout_ms", info.TimeoutMs, "new", w.req.Op == proto.OpCreateSession)
	}
	c.appendConnectResponse(&proto.ConnectResponse{
		TimeoutMs: info.TimeoutMs, SessionID: c.session, Passwd: w.passwd, HasReadOnly: w.hasReadOnly,
	})
}

// refuse answers that the session has expired, never existed, or has another password: clients
// cannot tell these apart. The story, if it is not nil, follows the answer; see
// docs/adr/0020-stories-for-clients.md. c is locked.
func (c *conn) refuse(hasReadOnly bool, story *facts.EndedSession) {
	c.appendConnectResponse(&proto.ConnectResponse{
		Passwd: make([]byte, proto.PasswdBytes), HasReadOnly: hasReadOnly, ReadOnly: c.server.leader.readOnly.Load(),
	})
	if story != nil {
		text, _ := json.Marshal(story) // cannot fail
		b, start := beginReply(c.Out.Buf, proto.XidPing, 0, proto.OK)
		c.Out.Buf = endFrame(jute.AppendBuffer(b, text), start)
	}
	c.Finish()
}

// noteAttached tells a test kit which session is attached to the connection; 0: none. c is locked.
func (c *conn) noteAttached(id proto.SessionID) {
	if note := c.server.cfg.hooks.Attached; note != nil {
		note(c.NetConn(), int64(id))
	}
}

func (c *conn) appendConnectResponse(r *proto.ConnectResponse) {
	c.noteAttached(r.SessionID)
	if !c.server.cfg.ClientKeepAlive { // whose probes have other times
		c.SetTimeout(time.Duration(r.TimeoutMs) * time.Millisecond)
	}
	start := len(c.Out.Buf)
	c.Out.Buf = endFrame(r.Append(append(c.Out.Buf, 0, 0, 0, 0)), start)
	m := &c.server.meter
	c.stats.Received++ // the connect request
	m.Count(meter.PacketsReceived)
	c.stats.Sent++
	m.Count(meter.PacketsSent)
	m.Add(meter.ResponseBytes, int64(len(c.Out.Buf)-start))
}
