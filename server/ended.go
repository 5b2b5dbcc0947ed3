package server

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

type connEnd struct {
	by, why string    // as facts.EndedClient.ClosedBy and Why
	at      time.Time // by the runtime's clock, because Config.Now may wait in tests, and c is locked
}

// maxStoryIDs bounds the identities that a story has, in bytes.
const maxStoryIDs = 1 << 10

const sessionMoved = "the session moved to another connection, or ended"

// noteEnd records how the connection ends. The first call counts. c is locked.
func (c *conn) noteEnd(by, why string) {
	if c.ending == nil {
		c.ending = &connEnd{by: by, why: why, at: time.Now()}
	}
}

// noteBroken records that the connection ended with an error of a read.
func (c *conn) noteBroken(err error) {
	c.Lock()
	defer c.Unlock()
	switch {
	case errors.Is(err, net.ErrClosed): // whoever closed it has recorded why, unless a write failed
		c.noteEnd("", "")
	case neterr.TLSReason(err) == neterr.HungUp && !neterr.Is(err, syscall.ECONNRESET):
		c.noteEnd(facts.ClientSide, "")
	default:
		c.noteEnd(facts.Network, inLog(neterr.TLSReason(err)))
	}
}

// closeLocked closes the connection for a reason of the server. c is locked.
func (c *conn) closeLocked(why string) {
	c.noteEnd(facts.ServerSide, why)
	c.CloseLocked()
}

// closeFor is closeLocked if c is not locked.
func (c *conn) closeFor(why string) {
	c.Lock()
	defer c.Unlock()
	c.closeLocked(why)
}

// owesAnswers reports whether a request that has come is not answered, or an answer not sent. If no
// further request may begin, only those that have begun are answered.
func (c *conn) owesAnswers() bool {
	c.Lock()
	defer c.Unlock()
	comes := !c.server.conns.lastAnswers.Load() && c.HasRequests()
	return !c.ClosedLocked() && (comes || c.queue.len() > 0 || !c.Sent())
}

// noteRefused records that this server told the client that a session is over, which may live.
func (c *conn) noteRefused(id proto.SessionID, lives bool, now time.Time) {
	c.server.endings.Refused(id, c.NetConn().RemoteAddr().String(), lives, now)
}

func (c *conn) story(now time.Time) *facts.EndedClient {
	alive := c.LastAlive(now)
	c.Lock()
	defer c.Unlock()
	return c.storyLocked(now, alive)
}

// storyLocked is story if c, which was last alive at that time, is locked.
func (c *conn) storyLocked(now, alive time.Time) *facts.EndedClient {
	r := &c.stats.Rhythm
	s := &facts.EndedClient{
		TimeoutMs: int64(c.timeoutMs), Address: c.NetConn().RemoteAddr().String(), Identities: shownIdentities(c.IDs),
		LastOp: cmp.Or(c.stats.LastOp.Info().Abbrev, "NA"), SilentMs: max(0, now.Sub(alive).Milliseconds()),
		LongestMs: r.Longest.Milliseconds(), Pings: r.Intervals, PingEveryMs: r.PingEvery().Milliseconds(),
		Open: c.ending == nil && !c.ClosedLocked(),
	}
	for size, i := 0, 0; i < len(s.Identities); i++ {
		if size += len(s.Identities[i]); size > maxStoryIDs { // a stranger can claim as many bytes as IDs hold
			s.Identities = append(s.Identities[:i:i], "…")
		}
	}
	if a := c.Answers(); s.Open && a.Known {
		s.Probed, s.AnsweredMs, s.Unanswered = true, a.Ago.Milliseconds(), a.Unanswered
	}
	if e := c.ending; e != nil {
		s.ClosedMs, s.ClosedBy, s.Why = time.Since(e.at).Milliseconds(), e.by, e.why
	}
	return s
}

// shownIdentities returns identities as Connection.Identities has them.
func shownIdentities(ids []proto.ID) (shown []string) {
	for _, id := range proto.ShownIDs(ids) {
		if id.Scheme != "ip" {
			shown = append(shown, id.Shown())
		}
	}
	return shown
}

// noteEnded keeps the story of a session that all members know and that has ended. before is the
// session. own: a request of this server itself ended it.
func (a *applier) noteEnded(
	req *datatree.Request, before datatree.SessionInfo, events []datatree.Event,
	timeMs int64, own bool, now time.Time,
) {
	s := a.s
	e := facts.EndedSession{
		EndedMs: timeMs, Zxid: s.state.tree.LastZxid().String(), How: facts.Expired, TimeoutMs: int64(before.TimeoutMs),
		Decider: int(memberid.Number(req.Server)), Server: int(memberid.Number(before.Server)),
	}
	if s.alone() {
		e.Decider, e.Server = s.endings.Own(), s.endings.Own()
	}
	if req.Op == proto.OpCloseSession {
		e.How = facts.Closed
	}
	for i := range events {
		if events[i].Type == proto.EventDeleted {
			e.Ephemerals = append(e.Ephemerals, events[i].Path)
		}
	}
	if c := s.conns.ofSession(before.ID); c != nil {
		e.Client = c.story(now)
	}
	from := s.servingFrom.Load()
	if e.Server == s.endings.Own() && from != nil && before.ConnEpoch <= from.zxid {
		e.UnseenMs = now.Sub(from.at).Milliseconds()
	}
	var secret []byte
	if before.Passwd != zkfiles.Password(before.ID) { // which anybody can compute
		secret = before.Passwd[:]
	}
	e = s.endings.Ended(before.ID, secret, e, own, now, time.Now())
	if e.How == facts.Expired && s.life.Serving.Load() && (own || e.Client != nil) {
		s.logStory("session expired", &e)
	}
}

func (s *shared) logStory(what string, e *facts.EndedSession) {
	cause, story := e.Verdict()
	s.cfg.Logger.Info(what, "session", e.Session, "cause", string(cause), "story", story)
}

// noteLocal keeps the story of a local session that has ended, and whose last connection, if it was
// open, had that story.
func (s *sessions) noteLocal(id proto.SessionID, how string, c *facts.EndedClient, now time.Time) {
	own := s.endings.Own()
	e := facts.EndedSession{EndedMs: now.UnixMilli(), How: how, Decider: own, Server: own, Client: c}
	e = s.endings.Ended(id, nil, e, true, now, time.Now())
	if how == facts.Expired {
		s.logStory("local session expired", &e)
	}
}

// servingFrom is the moment from which on this server serves clients, and its last zxid then.
type servingFrom struct {
	at   time.Time
	zxid proto.Zxid
}

// EndedSessions returns the stories of sessions that ended, or were refused to clients, as far as
// this server knows and for which keep returns true: the newest first, at most limit. The server
// remembers the last 10,000 ends and 1,000 refusals. keep gets stories without Cause and Story. The
// caller owns the result, and must not change data that its fields refer to.
func (f *Facts) EndedSessions(keep func(*facts.EndedSession) bool, limit int) []facts.EndedSession {
	return f.endings.List(keep, limit)
}

// forgetLocals ends all local sessions, whose connections are closed already.
func (s *sessions) forgetLocals() {
	for _, id := range s.conns.locals.Clear() {
		s.noteLocal(id, facts.Forgotten, nil, s.cfg.Now())
	}
}

// noteTurnedAway records that a connect request is closed without an answer, if it claims a session
// with its password. It does not wait for the state.
func (c newcomer) noteTurnedAway(r *proto.ConnectRequest, why string) {
	s := c.server
	if r.SessionID == 0 || !s.state.TryRLock() {
		return
	}
	info, known := s.state.tree.Session(r.SessionID)
	s.state.RUnlock()
	if known && subtle.ConstantTimeCompare(info.Passwd[:], r.Passwd) == 1 {
		s.endings.TurnedAway(r.SessionID, why, s.cfg.Now())
	}
}
