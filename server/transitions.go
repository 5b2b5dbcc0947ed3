package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// transitions is the server's part in the ensemble as last logged, so that each change is logged
// once. Owned by the goroutine of runSessions.
type transitions struct {
	mode   string
	leader uint64
	epoch  uint32
	peers  map[uint64]phase // on the leader
}

// phase is the state of another member as the leader sees it.
type phase uint8

const (
	phaseInStep phase = iota // also that of a new member, so that a member in step is not logged
	phaseSilent
	phaseCheckpoint
	phaseLog
)

// awaitLeader waits until there is a leader and this server has applied everything that was
// committed before that leader's time. If that takes long, awaitLeader logs the reason, less and
// less often.
func (s *Server) awaitLeader(ctx context.Context, failed <-chan error) error {
	patience := time.Duration(s.cfg.SyncLimit) * s.cfg.Tick
	timer := time.NewTimer(patience)
	defer timer.Stop()
	look := time.NewTicker(max(s.cfg.Tick/2, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.readOnlyStart()
		case <-s.node.Ready():
			return nil
		case err := <-failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("server: no leader in time: %w", ctx.Err())
		case <-timer.C:
			s.logWaiting()
			patience *= 2
			timer.Reset(patience)
		}
	}
}

// logWaiting logs why the server does not serve yet.
func (s *Server) logWaiting() {
	if s.alone() {
		return // it applies its own log, and waits for nobody
	}
	st, log := s.node.Status(), s.cfg.Logger.With("connected", s.node.Connected())
	switch {
	case st.Leader != 0:
		log.Info("not serving clients yet: catching up with the leader", "leader", st.Leader, "applied_index", st.Applied)
	case st.Fresh && s.cfg.JoinOnly:
		log.Warn("not serving clients yet: no data here, and db.autocreate=false keeps this server from founding an ensemble. It waits for a leader that has the data. "+
			"To found a new ensemble, run gozkd init on all servers first, or create the file initialize in their dataLogDir",
			"voters", s.members.Voters())
	case st.Fresh:
		log.Warn("not serving clients yet: no data here. This server waits for the other voters to form a new ensemble, or for a leader that has the data and knows this server as a member. "+
			"If the ensemble exists: add this server with reconfig, or give all servers its line and restart them one by one. Without that it can only follow an ensemble whose servers have a secret (gozkd.peer.secretFile)",
			"voters", s.members.Voters())
	default:
		log.Warn("not serving clients yet: no leader, which needs a majority of the voters", "voters", st.Voters)
	}
}

// logRole logs a new role, leader or epoch.
func (s *Server) logRole(st consensus.Status) {
	if s.alone() {
		return
	}
	if st.Current {
		zxid := s.treeStats().zxid
		last := &s.loop.lastLogged
		now := transitions{mode: s.mode(), leader: st.Leader, epoch: zxid.Epoch(), peers: last.peers}
		if now.mode != last.mode || now.leader != last.leader || now.epoch != last.epoch {
			s.cfg.Logger.Info("role", "mode", now.mode, "leader", now.leader, "epoch", fmt.Sprintf("0x%x", now.epoch), "term", st.Term,
				"zxid", zxid.String())
		}
		*last = now
	}
	if !st.Leading {
		s.loop.lastLogged.peers = nil
	}
}

// fewEntries is a lag that is not logged: such a lag is gone before anybody reads the line.
const fewEntries = 256

// logPeers logs, on the leader, members that fall silent, catch up, or are in step again. logPeers
// runs twice a tick, and misses shorter transitions.
func (s *Server) logPeers(st consensus.Status) {
	now := make(map[uint64]phase, len(st.Peers))
	for _, p := range st.Peers {
		before := s.loop.lastLogged.peers[p.ID]
		after := phaseOf(p, before)
		now[p.ID] = after
		if after == before {
			continue
		}
		log := s.cfg.Logger.With("server", p.ID)
		if lagKnown(p) {
			log = log.With("lag_entries", p.Lag)
		}
		switch after {
		case phaseSilent:
			log.Warn("a server does not answer")
		case phaseCheckpoint:
			log.Info("a server receives a checkpoint: it lacks entries that the log no longer has")
		case phaseLog:
			log.Info("a server catches up by the log")
		case phaseInStep:
			log.Info("a server is in step")
		}
	}
	s.loop.lastLogged.peers = now
}

func phaseOf(p consensus.PeerStatus, before phase) phase {
	switch {
	case !p.Active:
		return phaseSilent
	case p.InStep:
		return phaseInStep
	case p.Checkpoint:
		return phaseCheckpoint
	case lagKnown(p) && p.Lag > fewEntries:
		return phaseLog
	}
	return before
}
