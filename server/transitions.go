package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// What the log says of the server's part in an ensemble: once for each change.

// told is what was said last. It belongs to the goroutine of runSessions.
type transitions struct {
	mode   string
	leader uint64
	epoch  uint32
	peers  map[uint64]phase // leading: of those spoken of
}

// phase is how far a leader has brought another member.
type phase uint8

const (
	phaseInStep phase = iota // of whom nothing was said yet, too: then it needs no words
	phaseSilent
	phaseCheckpoint
	phaseLog
)

// awaitLeader waits until there is a leader and this server has what was committed before its time. Who waits for long is told what for.
func (s *Server) awaitLeader(ctx context.Context, failed <-chan error) error {
	patience := time.Duration(s.cfg.SyncLimit) * s.cfg.Tick
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
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

func (s *Server) logWaiting() {
	if s.alone() {
		return // it reads its own log
	}
	st, log := s.node.Status(), s.cfg.Logger.With("connected", s.node.Connected())
	switch {
	case st.Leader != 0:
		log.Info("not serving clients yet: catching up with the leader", "leader", st.Leader, "applied_index", st.Applied)
	case st.Fresh:
		log.Warn("not serving clients yet: no data here. This server waits for a leader that has it, or for the other voters, to form a new ensemble",
			"voters", s.members.Voters())
	default:
		log.Warn("not serving clients yet: no leader, which takes a majority of the voters", "voters", st.Voters)
	}
}

// logRole speaks of a new role or epoch.
func (s *Server) logRole(st consensus.Status) {
	if s.alone() {
		return
	}
	if st.Current {
		zxid := s.treeStats().zxid
		now := transitions{mode: s.mode(), leader: st.Leader, epoch: zxid.Epoch(), peers: s.loop.lastLogged.peers}
		if now.mode != s.loop.lastLogged.mode || now.leader != s.loop.lastLogged.leader || now.epoch != s.loop.lastLogged.epoch {
			s.cfg.Logger.Info("role", "mode", now.mode, "leader", now.leader, "epoch", fmt.Sprintf("0x%x", now.epoch), "term", st.Term,
				"zxid", zxid.String())
		}
		s.loop.lastLogged = now
	}
	if !st.Leading {
		s.loop.lastLogged.peers = nil
	}
}

// fewEntries is a lag that is not worth a line: it is gone before the line is read.
const fewEntries = 256

// logPeers speaks, on the leader, of members that fall silent, catch up, or are in step again. It runs twice a tick; what lasts less
// may be passed over.
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
			log.Info("a server gets a checkpoint: it lacks more than the log here has")
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
