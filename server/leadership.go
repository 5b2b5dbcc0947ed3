package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/members"
)

// leadership is how this server stands to the leader, or as the leader to the others: whether it is
// in touch with one, and so whether clients are served, only read-only (readonly.go), or sent away;
// the reports of members to each other (reports.go), and whether states differ (diverged.go).
//
// The goroutine of runSessions follows the leader and reports; before it begins, that of Start
// waits for one. Consensus brings messages, which count once the server serves. lost and readOnly
// may be read anywhere. Clients are let in again only after readOnly has ended.
type leadership struct {
	*shared
	sessions *sessions
	conns    *connTable
	ports    *serverPorts
	nonce    [8]byte // random; comes back with answers to seek
	lines    *members.Lines
	growth   *growth
	fail     func(error) // stops the server
	contact  liveness.Contact
	digests  members.Digests
	lost     atomic.Bool // there was no contact for too long: clients are refused, unless readOnly is set
	// readOnly: clients that accept a read-only server are served. Set while there is no contact
	// for too long, or at the start not yet.
	readOnly atomic.Bool
	// caughtUp is closed when this server, which was lost and is in touch again, has applied the
	// entries that were committed when the contact came back. nil: it is not lost, or not in touch.
	// catchingUp is set meanwhile.
	caughtUp   <-chan struct{}
	catchingUp atomic.Bool
	outOfTouch bool      // for more than two ticks
	greeted    time.Time // Status.Since of the leadership in which this server last reported
	sentAway   time.Time // Status.Since of the leadership in which clients were sent away
	// logAfter is for how long there must have been no contact when the reason is logged again.
	logAfter time.Duration
	log      transitions
}

// await waits until there is a leader and this server has applied everything that was committed
// when it found the leader. If that takes long, await logs the reason, less and less often.
func (s *leadership) await(ctx context.Context, failed <-chan error) error {
	patience := time.Duration(s.cfg.SyncLimit) * s.cfg.Tick
	timer := time.NewTimer(patience)
	defer timer.Stop()
	look, begun := s.sessions.beginPasses(), time.Now()
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.sessions.beginPass(look)
			s.readOnlyStart()
			s.seek(time.Since(begun) > 2*s.cfg.Tick)
		case <-s.node.Ready():
			return nil
		case err := <-failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("server: the wait for a leader ended: %w", context.Cause(ctx))
		case <-timer.C:
			s.log.logWaiting()
			patience *= 2
			timer.Reset(patience)
		}
	}
}

// watch follows the leadership. A server that for syncLimit ticks knows no leader, or hears one but
// is not heard by it, closes its client connections, as ZooKeeper does: then clients know that they
// may be cut off, and try other servers. Sessions live on.
func (s *leadership) watch(st consensus.Status) {
	lastGood := s.contact.Last(st.Leading, st.Leader != 0, st.Since, time.Now())
	silent := time.Since(lastGood)
	if s.outOfTouch = silent > 2*s.cfg.Tick; s.outOfTouch {
		now := s.cfg.Now()
		s.endings.Note(facts.OutOfTouch, now.Add(-silent), now)
	}
	inTime := silent <= time.Duration(s.cfg.SyncLimit)*s.cfg.Tick
	if st.Leader == 0 || !inTime {
		s.caughtUp = nil
		s.catchingUp.Store(false)
	}
	switch {
	case st.Leader != 0 && inTime:
		if s.lost.Load() && s.hasCaughtUp() {
			s.endReadOnly()
			s.lost.Store(false)
			s.cfg.Logger.Info("serving clients again", "leader", memberid.Number(st.Leader))
		}
	case !inTime:
		if !s.lost.Swap(true) {
			s.logAfter = 2 * silent
			why := "no leader for syncLimit ticks"
			if st.Leader != 0 {
				why = "the leader has not heard this server for syncLimit ticks"
			}
			s.cfg.Logger.Warn(why+": client connections are closed, and new ones refused",
				"since_ms", time.Since(lastGood).Milliseconds(), "leader", memberid.Number(st.Leader),
				"voters", memberid.Numbers(st.Voters), "connected", memberid.Numbers(s.node.Connected()))
			s.conns.drop(why)
			s.sessions.forgetLocals() // as in ZooKeeper; see attachLocal for those that connect at this moment
			s.beginReadOnly(st)
		}
		switch {
		case s.log.mode == modeQuorumGone:
		case s.log.logQuorumGone(st):
			s.log.mode = modeQuorumGone
		case st.Leader == 0 && silent > s.logAfter:
			s.logAfter = 2 * silent // less and less often
			s.log.logWaiting()
		}
	}
}

// hasCaughtUp reports whether this server, which is in touch with a leader again, has applied the
// entries that were committed at the first call. A server that lags would otherwise count as ready,
// and an update would stop the next one.
func (s *leadership) hasCaughtUp() bool {
	if s.caughtUp == nil {
		s.caughtUp = s.current()
	}
	select {
	case <-s.caughtUp:
		s.caughtUp = nil
		s.catchingUp.Store(false)
		return true
	default:
		s.catchingUp.Store(true)
		return false
	}
}

func (s *leadership) leavesClients(st consensus.Status) bool {
	return s.cfg.LeaderWithoutClients && st.Leading && len(st.Voters)+len(st.Learners) > 1
}

// sendAway closes the connections of all clients once per leadership in which this server leaves
// clients to the other members. A connection that is made later is refused by its handshake.
func (s *leadership) sendAway(st consensus.Status) {
	switch {
	case !s.leavesClients(st):
		s.sentAway = time.Time{}
	case !s.sentAway.Equal(st.Since):
		s.sentAway = st.Since
		s.cfg.Logger.Info("this server leads and leaves clients to the others (leaderServes=no): their connections are closed", "connections", s.conns.count())
		s.conns.drop("the server began to lead and leaves clients to the others (leaderServes=no)")
	}
}
