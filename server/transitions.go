package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
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
			return fmt.Errorf("server: the wait for a leader ended: %w", context.Cause(ctx))
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
	st, log := s.node.Status(), s.cfg.Logger.With("connected", memberid.Numbers(s.node.Connected()))
	switch {
	case st.Leader != 0:
		log.Info("not serving clients yet: catching up with the leader",
			"leader", memberid.Number(st.Leader), "applied_index", st.Applied)
	case logQuorumGone(s, st):
	case st.Fresh:
		waits := "for a leader that has the data and knows this server as a member; if it is none yet, " + howToJoin(s.cfg)
		switch {
		case len(st.WithData) > 0:
		case s.cfg.JoinOnly:
			waits += ". db.autocreate=false keeps it from founding an ensemble: " +
				"only if no voter has ever had data, run gozkd init on all of them"
		default:
			waits = "for the other voters to form a new ensemble, or " + waits
		}
		log.Warn("not serving clients yet: no data here. This server waits "+waits,
			"voters", memberid.Numbers(s.members.Voters()), "with_data", memberid.Numbers(st.WithData), "without_data", memberid.Numbers(st.WithoutData))
	default:
		log.Warn("not serving clients yet: no leader, which needs a majority of the voters",
			"voters", memberid.Numbers(st.Voters))
	}
}

// howToJoin says how this server becomes a member of an ensemble.
func howToJoin(cfg *Config) string {
	how := "give all servers its line and restart them one by one"
	if cfg.ReconfigEnabled {
		how = "add it with reconfig"
	}
	return how + ". Without that it can only follow servers that have a secret (gozkd.peer.secretFile)"
}

// modeQuorumGone in transitions says that the loss of the quorum was logged.
const modeQuorumGone = "quorum gone"

// logQuorumGone logs, and reports, that too few voters are left that have data. The others do not
// vote until a leader lets them in, so there will be none.
func logQuorumGone(s *Server, st consensus.Status) (gone bool) {
	voters := st.Voters
	if st.Fresh {
		voters = s.members.Voters()
	}
	left := slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool { return slices.Contains(st.WithoutData, id) })
	if len(left) > len(voters)/2 || len(st.WithData) == 0 {
		return false
	}
	why := "the quorum is gone for good. Too many voters have lost their data; without it they do not vote. "
	if st.Fresh { // the members of those with data may be fewer than the lines of this server name
		why = "too many voters of this server's lines have no data. Start those that have it: if they are an ensemble without the others, they let them in. " +
			"If not, the quorum is gone for good. "
	}
	s.cfg.Logger.Error("not serving clients: "+why+
		"If a disk of one survives, start it with that disk. Otherwise stop all servers, find the newest directory with gozkd inspect, "+
		"and gozkd restore from it, the archive or a backup: docs/guide/operate.md#quorum-gone-for-good",
		"voters", memberid.Numbers(voters), "with_data", slices.Sorted(slices.Values(memberid.Numbers(st.WithData))), "without_data", slices.Sorted(slices.Values(memberid.Numbers(st.WithoutData))))
	return true
}

// logRole logs a new role, leader or epoch.
func (s *Server) logRole(st consensus.Status) {
	if s.alone() {
		return
	}
	if st.Current {
		zxid := s.state.lastZxid()
		last := &s.loop.lastLogged
		now := transitions{mode: s.mode(), leader: st.Leader, epoch: zxid.Epoch(), peers: last.peers}
		if now.mode != last.mode || now.leader != last.leader || now.epoch != last.epoch {
			s.cfg.Logger.Info("role",
				"mode", now.mode, "leader", memberid.Number(now.leader), "epoch", fmt.Sprintf("0x%x", now.epoch), "term", st.Term,
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
		log := s.cfg.Logger.With("server", memberid.Number(p.ID))
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
