package server

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// sessions ends sessions of silent clients, and deletes containers and TTL znodes in time. It
// owns expiry, by which the leader judges the sessions that all members know, and ends the local
// sessions in the connection table. Package liveness has the rules.
//
// Only the goroutine of runSessions judges, or before it begins that of Start, in those passes in
// which Passes.Next says so. Server.ExpireSession and ExpireDue end sessions from any goroutine.
// Which sessions end is chosen under the tree's lock.
type sessions struct {
	*shared
	conns  *connTable
	audit  func(audit.Event)
	expiry *liveness.Expiry
	passes liveness.Passes // owned by the goroutine that judges
	lastID atomic.Uint64   // that newSession chose, without the member
}

// aheadIDs is how many zxids the ids that newSession chooses are ahead of the state, so that a
// server that has not seen a session takes its id for one of a later session.
const aheadIDs = 1 << 20

// newSession returns the password of a new session. It is random, and the tree chooses the id,
// unless ZooKeeper should be able to compute the password from the id.
func (s *sessions) newSession() (id proto.SessionID, passwd [proto.PasswdBytes]byte, err error) {
	if !s.cfg.ZooKeeperPasswords {
		if _, err := s.cfg.Rand.Read(passwd[:]); err != nil {
			return 0, passwd, fmt.Errorf("session password: %w", err)
		}
		return 0, passwd, nil
	}
	for {
		last := s.lastID.Load()
		next := max(last+1, uint64(s.state.lastZxid())+aheadIDs)
		if s.lastID.CompareAndSwap(last, next) {
			id = proto.SessionID(memberid.Number(s.cfg.MemberID))<<56 | proto.SessionID(next)&(1<<56-1)
			return id, zkfiles.Password(id), nil
		}
	}
}

// commitPatience returns the time without progress after which this server counts as unable to
// commit. A loop at rest shows no progress for MaxRestTicks, and is awake some time after them.
func commitPatience(tick time.Duration) time.Duration {
	return max(tick, 2*consensus.MaxRestTicks*raftTick(tick))
}

// runSessions follows the leadership, twice a tick, whenever it changes, and when this server has
// caught up. Also twice a tick, it reports to the leader which sessions were heard from, or, on the
// leader, expires the sessions that were not heard from.
func (s *Server) runSessions(ctx context.Context) {
	ticker := s.sessions.beginPasses()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.node.Changed():
			s.followLeader(s.node.Status())
			continue
		case <-s.leader.caughtUp:
			s.followLeader(s.node.Status())
			continue
		case <-ticker.C:
		}
		now, judges := s.sessions.beginPass(ticker)
		st := s.node.Status()
		s.meter.Hot.Tick()
		s.followLeader(st)
		s.leader.seek(s.leader.outOfTouch)
		s.lines.follow(st)
		switch {
		case st.Leading && judges:
			s.leader.log.logPeers(st)
			s.sessions.judge(st, now)
		case !st.Leading && st.Leader != 0: // also when time was lost: see greet
			s.leader.report(st, now)
		}
	}
}

func (s *Server) followLeader(st consensus.Status) {
	s.sessions.expiry.Lead(st.Leading, st.Since, s.cfg.Now())
	s.endings.Led(st.Leader, s.cfg.Now())
	s.leader.watch(st)
	s.leader.greet(st)
	if st.Leading && !s.alone() && !s.configured.begun.Load() && s.quorumConnected(s.members) {
		// The first membership of a new ensemble, or of one that grows out of a standalone server,
		// which must wait for others: the membership that this leader is configured with.
		s.propose(datatree.Request{Op: proto.OpInitConfig, Body: []byte(s.members.Text(0))}, nil)
	}
	s.leader.sendAway(st)
	s.state.wake()
	s.leader.log.logRole(st, s.facts.mode())
}

func (s *sessions) interval() time.Duration { return max(s.cfg.Tick/2, time.Millisecond) }

// beginPasses begins a loop of passes, one whenever the ticker fires.
func (s *sessions) beginPasses() *time.Ticker {
	s.passes = liveness.NewPasses(s.interval(), commitPatience(s.cfg.Tick), time.Now())
	return time.NewTicker(s.interval())
}

// beginPass begins a pass, and ends local sessions if it judges. Time that was lost counts for no
// session, and the connections are read before the next pass.
func (s *sessions) beginPass(ticker *time.Ticker) (now time.Time, judges bool) {
	now = s.cfg.Now()
	mono := time.Now()
	lost, judges := s.passes.Next(mono)
	s.endings.Pass(lost, now, now.Round(0), mono)
	if lost > 0 {
		ticker.Reset(s.interval())
		s.expiry.GiveBack(lost, now)
		s.conns.locals.GiveBack(lost, now)
	}
	if lost > max(s.cfg.Tick, time.Second) {
		s.cfg.Logger.Warn("this process stood still: the time does not count for sessions; "+
			"look for a paused process or virtual machine, or for a machine that is overloaded",
			"lost_ms", lost.Milliseconds())
	}
	for _, c := range s.conns.all() {
		c.NoteProgress(now)
	}
	if judges {
		for id, c := range s.conns.locals.Expire(now) {
			s.endLocal(id, c, now)
		}
	}
	return now, judges
}

// judge proposes, on a leader that can commit, to close sessions that were not heard from in time.
func (s *sessions) judge(st consensus.Status, now time.Time) {
	can, changed := s.passes.CanCommit(st.Progress, time.Now())
	switch {
	case changed && !can:
		s.cfg.Logger.Warn("nothing can be committed: no session expires until that is over; "+
			"look at the log's disk, here and on a quorum of the members",
			"waits_ms", time.Since(st.Progress).Milliseconds())
	case changed:
		s.expiry.ResetAll(now)
		s.cfg.Logger.Info("requests are committed again: every session has its full timeout")
	}
	if !can {
		s.endings.Note(facts.NoCommit, now.Add(-time.Since(st.Progress)), now)
		return
	}
	s.touchConnected(now)
	infos, epoch := s.choose(func() []proto.SessionID {
		return s.expiry.Expired(now, func(id proto.SessionID) (uint8, time.Duration, bool) {
			info, ok := s.state.tree.Session(id)
			return info.Server, timeoutOf(info), ok
		})
	})
	for _, info := range infos {
		s.cfg.Logger.Info("session expires", "session", info.ID.String(), "timeout_ms", info.TimeoutMs)
		s.propose(expiryRequest(info, epoch), nil)
	}
}

func (s *sessions) touchConnected(now time.Time) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for id, c := range s.conns.bySession {
		s.expiry.Touch(id, c.LastAlive(now))
	}
	clear(s.conns.unattachedAt) // forget and heardOwner have touched these
}

// choose returns the sessions that ids chooses to be closed, and the present epoch. It holds the
// tree's lock so that no session re-attaches meanwhile: a session that re-attached after expiry had
// given up on it would be closed under its new epoch.
func (s *sessions) choose(ids func() []proto.SessionID) (infos []datatree.SessionInfo, epoch uint32) {
	s.state.RLock()
	defer s.state.RUnlock()
	for _, id := range ids() {
		if info, ok := s.state.tree.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.state.tree.LastZxid().Epoch()
}

// expiryRequest returns the request that ends a session. The request names the connection epoch
// that was seen, so a session that re-attaches in the meantime lives, and the epoch of this leader,
// so the session also lives if another leader takes over.
func expiryRequest(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession,
		Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}

func timeoutOf(info datatree.SessionInfo) time.Duration {
	return time.Duration(info.TimeoutMs) * time.Millisecond
}

// timeouts yields the sessions of a member or, for member 0, all sessions. The tree's lock is held.
func (s *sessions) timeouts(member uint8) iter.Seq2[proto.SessionID, time.Duration] {
	return func(yield func(proto.SessionID, time.Duration) bool) {
		for info := range s.state.tree.Sessions() {
			if (member == 0 || info.Server == member) && !yield(info.ID, timeoutOf(info)) {
				return
			}
		}
	}
}

// adopt makes expiry know the sessions of a state that was restored.
func (s *sessions) adopt() {
	now := s.cfg.Now()
	s.state.RLock()
	defer s.state.RUnlock()
	s.expiry.Adopt(s.timeouts(0), now)
}

// reported records a report of another member, whose touches are recorded already.
func (s *sessions) reported(from uint8, r liveness.Report) {
	if r.FirstOfProcess {
		s.state.RLock() // for the sessions
		defer s.state.RUnlock()
	}
	s.expiry.Reported(from, r, s.timeouts(from))
}

func (s *sessions) endLocal(id proto.SessionID, c *conn, now time.Time) {
	var story *facts.EndedClient
	if c != nil {
		story = c.story(now)
	}
	s.noteLocal(id, facts.Expired, story, now)
	s.meter.Count(meter.SessionsExpired)
	s.audit(audit.Event{Operation: audit.ExpireSession, Result: audit.Success, Session: id})
	if c != nil {
		c.Close()
	}
}

// expireNow is Server.ExpireSession. A local session that is upgrading is waited for: it will be
// global, and the request that makes it so would bring it back.
func (s *sessions) expireNow(ctx context.Context, id proto.SessionID) error {
	ended, now := false, s.cfg.Now()
	err := s.state.await(ctx, &s.life, fmt.Sprintf("session %v becomes global, and has not ended", id), func() bool {
		c, known, upgrading := s.conns.locals.Remove(id)
		if ended = known && !upgrading; ended {
			s.endings.Asked(id)
			s.endLocal(id, c, now)
		}
		return !upgrading
	})
	if ended || err != nil {
		return err
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for {
		info, known, epoch := s.state.session(id)
		if !known {
			return fmt.Errorf("%w: 0x%x", ErrNoSession, uint64(id))
		}
		var code proto.ErrCode
		s.endings.Asked(id)
		err := s.decide(ctx, []datatree.Request{expiryRequest(info, epoch)}, func(r *datatree.Result) { code = r.Err })
		if err != nil || code == proto.OK {
			return err
		}
		// The session was re-attached, or another server leads now: try again.
	}
}

func (s *sessions) moveClock(move func() (connected []int64)) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	if s.life.Accepting.Load() { // otherwise a new leader would give full timeouts after the jump
		st := s.node.Status()
		s.expiry.Lead(st.Leading, st.Since, s.cfg.Now())
	}
	s.expiry.Jump(func() (from, now time.Time, heard []int64) {
		s.conns.locals.Jump(func() (time.Time, []int64) {
			from = s.cfg.Now()
			heard, now = move(), s.cfg.Now()
			for _, c := range s.conns.byID {
				c.SetHandling(false) // requests from before the jump say nothing of the time after it
			}
			s.endings.Moved(from, now)
			return now, heard
		})
		if heard == nil {
			for id := range s.conns.bySession {
				heard = append(heard, int64(id))
			}
		}
		return from, now, heard
	})
}

func (s *sessions) expireDue(ctx context.Context) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	for {
		if !s.node.Status().Leading {
			return ErrNotLeading
		}
		now := s.cfg.Now()
		s.touchConnected(now)
		// This includes sessions that a tick has found already: their end may not be applied yet.
		infos, epoch := s.choose(func() []proto.SessionID { return s.expiry.Due(now) })
		var due []datatree.Request
		for _, info := range infos {
			due = append(due, expiryRequest(info, epoch))
		}
		due = append(due, s.collectable(now, s.live.Load().ContainerMaxPerMinute)...)
		changed := false
		err := s.decide(ctx, due, func(res *datatree.Result) {
			changed = changed || res.Err == proto.OK || res.Err == errUnknownOutcome
		})
		if err != nil || !changed { // a change may have emptied a container
			return err
		}
	}
}

func (s *sessions) runCollector(ctx context.Context) {
	for backoff.Sleep(ctx, s.cfg.ContainerInterval) {
		if !s.life.Serving.Load() { // the log is closed and takes no requests
			return
		}
		if s.node.Status().Leading {
			perRound := max(1, int(float64(s.live.Load().ContainerMaxPerMinute)*s.cfg.ContainerInterval.Minutes()))
			for _, r := range s.collectable(s.cfg.Now(), perRound) {
				s.propose(r, nil)
			}
		}
	}
}

func (s *sessions) collectable(now time.Time, limit int) (requests []datatree.Request) {
	s.state.RLock()
	found := s.state.tree.Collectable(now.UnixMilli(), max(0, s.live.Load().ContainerNeverUsed.Milliseconds()), limit)
	s.state.RUnlock()
	for _, body := range found {
		requests = append(requests, datatree.Request{Op: proto.OpDeleteContainer, Body: body.Append(nil)})
	}
	return requests
}
