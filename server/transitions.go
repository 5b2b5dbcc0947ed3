package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
)

// transitions logs each change of the server's part in the ensemble once. It holds the last one.
type transitions struct {
	*shared
	mode   string
	leader uint64
	epoch  uint32
	peers  map[uint64]string // on the leader: the states of the other members
}

// The states of another member as the leader sees it, as they are logged.
const (
	phaseInStep     = "a server is in step"
	phaseSilent     = "a server does not answer"
	phaseCheckpoint = "a server receives a checkpoint: it lacks entries that the log no longer has"
	phaseLog        = "a server catches up by the log"
)

func (s *transitions) logWaiting() {
	if s.alone() {
		return // it applies its own log, and waits for nobody
	}
	connected := s.node.Connected()
	unheard := !slices.ContainsFunc(s.node.PeerLinks(), func(l consensus.PeerLink) bool { return l.Incoming })
	st, log := s.node.Status(), s.cfg.Logger.With("connected", memberid.Numbers(connected))
	switch {
	case st.Leader != 0:
		log.Info("not serving clients yet: catching up with the leader",
			"leader", memberid.Number(st.Leader), "applied_index", st.Applied)
	case s.logQuorumGone(st):
	case !st.Fresh:
		log.Warn("not serving clients yet: " + s.whyNoLeader(st))
	default:
		waits := "for a leader that has the data and knows this server as a member; if it is none yet, " + s.howToJoin()
		switch {
		case len(st.WithData) > 0:
		case unheard && len(connected) > 0: // so they cannot say who has data
			waits = "for the others to connect to it"
		case s.node.Emptied():
			waits = "for a server that has the data, which this one has lost: start all servers"
		case s.cfg.JoinOnly:
			waits += ". db.autocreate=false keeps it from founding an ensemble: " +
				"only if no voter has ever had data, run gozkd init on all of them"
		default:
			waits = "for the other voters to form a new ensemble, or " + waits
		}
		if unheard { // also if they cannot confirm who it is
			waits += ". If the others run, they may have another address of this server: " +
				"compare its server line with what gozkd cli config says on one of them, and correct the line"
		}
		log.Warn("not serving clients yet: no data here. This server waits "+waits,
			"voters", memberid.Numbers(s.members.Voters()), "with_data", memberid.Numbers(st.WithData), "without_data", memberid.Numbers(st.WithoutData))
	}
}

func (s *shared) howToJoin() string {
	how := "give all servers its line and restart them one by one"
	if s.live.Load().ReconfigEnabled {
		how = "add it with reconfig"
	}
	return how + ". Without that it can only follow servers that have a secret (gozkd.peer.secretFile)"
}

// modeQuorumGone in transitions says that the loss of the quorum was logged.
const modeQuorumGone = "quorum gone"

// logQuorumGone logs, and reports, that the quorum is gone for good.
func (s *transitions) logQuorumGone(st consensus.Status) (gone bool) {
	why := s.quorumGone(st)
	if why != "" {
		s.cfg.Logger.Error("not serving clients: "+why, "voters", memberid.Numbers(s.voters(st)),
			"with_data", slices.Sorted(slices.Values(memberid.Numbers(st.WithData))), "without_data", slices.Sorted(slices.Values(memberid.Numbers(st.WithoutData))))
	}
	return why != ""
}

// voters returns the voters of the state, or of this server's lines if it has no state.
func (s *shared) voters(st consensus.Status) []uint64 {
	if st.Fresh {
		return s.members.Voters()
	}
	return st.Voters
}

// quorumGone returns why there will be no leader, and what to do, if too few voters are left that
// have data; otherwise "". The others do not vote until a leader lets them in.
func (s *shared) quorumGone(st consensus.Status) string {
	voters := s.voters(st)
	left := slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool { return slices.Contains(st.WithoutData, id) })
	if len(voters) == 0 || len(left) > len(voters)/2 || len(st.WithData) == 0 { // none: the state has just begun
		return ""
	}
	why := "the quorum is gone for good. Too many voters have lost their data; without it they do not vote. "
	if st.Fresh { // the members of those with data may be fewer than the lines of this server name
		why = "too many voters of this server's lines have no data. Start those that have it: if they are an ensemble without the others, they let them in. " +
			"If not, the quorum is gone for good. "
	}
	return why + "If a disk of one survives, start it with that disk. Otherwise stop all servers, find the newest directory with gozkd inspect, " +
		"and gozkd restore from it, the archive or a backup: docs/guide/operate.md#quorum-gone-for-good"
}

// whyNoLeader returns which voters this server lacks for a leader, for how long it has known none,
// and what to do.
func (s *shared) whyNoLeader(st consensus.Status) string {
	if why := s.quorumGone(st); why != "" {
		return fmt.Sprintf("%s (servers without data: %d)", why, memberid.Numbers(st.WithoutData))
	}
	since, voters := s.startedMono, s.voters(st)
	if !st.Since.IsZero() {
		since = st.Since
	}
	away := s.away(voters)
	why := fmt.Sprintf("no leader, which needs a majority of the voters %d; this server is connected to %d, and has known no leader for %v",
		memberid.Numbers(voters), memberid.Numbers(s.node.Connected()), time.Since(since).Round(time.Second))
	if len(away) < len(voters)-len(voters)/2 {
		return why
	}
	return fmt.Sprintf("%s: start servers %d, or, if they run, read in the log why there is no connection, "+
		"or, if their disks are lost, see docs/guide/operate.md#quorum-gone-for-good", why, memberid.Numbers(away))
}

func (s *transitions) logRole(st consensus.Status, mode string) {
	if s.alone() {
		return
	}
	zxid := s.state.lastZxid()
	if epoch := zxid.Epoch(); st.Current && (mode != s.mode || st.Leader != s.leader || epoch != s.epoch) {
		s.mode, s.leader, s.epoch = mode, st.Leader, epoch
		s.cfg.Logger.Info("role", "mode", mode, "leader", memberid.Number(st.Leader),
			"epoch", fmt.Sprintf("0x%x", epoch), "term", st.Term, "zxid", zxid.String())
	}
	if !st.Leading {
		s.peers = nil
	}
}

// fewEntries is a lag that is not logged: such a lag is gone before anybody reads the line.
const fewEntries = 256

// logPeers logs, on the leader, members that fall silent, catch up, or are in step again. It runs
// twice a tick, and misses shorter transitions.
func (s *transitions) logPeers(st consensus.Status) {
	now := make(map[uint64]string, len(st.Peers))
	for _, p := range st.Peers {
		before := cmp.Or(s.peers[p.ID], phaseInStep) // so that a new member in step is not logged
		after := stateOf(p, before)
		now[p.ID] = after
		if after == before {
			continue
		}
		log := s.cfg.Logger.With("server", memberid.Number(p.ID))
		if lagKnown(p) {
			log = log.With("lag_entries", p.Lag)
		}
		if after == phaseSilent {
			log.Warn(after)
		} else {
			log.Info(after)
		}
	}
	s.peers = now
}

func stateOf(p consensus.PeerStatus, before string) string {
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
