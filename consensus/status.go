package consensus

import (
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// Status is a view of the node at one moment. Its slices are shared and must not be changed.
type Status struct {
	Leader  uint64    // 0: none is known
	Leading bool      // this member leads
	Since   time.Time // when Leader or Leading last changed, by a clock that does not jump
	Term    uint64    // of the last applied entry
	Applied uint64    // index of the last applied entry
	Current bool      // a leader is known and its first entry is applied
	Fresh   bool      // this member has no state: it waits to form an ensemble or to be let in
	Voter   bool      // this member votes
	// Outdated: the data directory is older than what this member has acknowledged, so the member
	// waits to be let in again.
	Outdated bool
	Level    Level // the active feature level
	// MaxLevel is the highest feature level that this member agrees to activate.
	MaxLevel Level
	// LogStalled: for an election timeout the log's disk has not answered. If this member leads, it
	// tries to hand over.
	LogStalled bool
	// Reverted: the newest checkpoint was damaged, so this start began with the previous one.
	Reverted bool
	// Progress is when something was last applied or nothing waited to be applied, by a clock that
	// does not jump: requests of this member or, if it leads, of any member. If Progress is long
	// ago, this member cannot commit or apply anything: there is no quorum, a disk hangs, or the
	// loop does.
	Progress time.Time

	// Joining: this member leads, and members without state have asked to be let in and wait.
	Joining bool

	// WithoutData are the connected members and this one that have no data, WithData those that
	// are known to have data. Both are nil while a leader is known.
	WithoutData, WithData []uint64

	Voters, Learners []uint64     // raft's membership, which differs from the target during a change
	Peers            []PeerStatus // the other members, if this member leads
	// Relay is the voter that sends this member entries in place of the leader; 0: none. Relays are
	// the members to which this member does, as of its last tick.
	Relay  uint64
	Relays []uint64

	Counts Counts
}

// statusBoard publishes the node's status to other goroutines.
type statusBoard struct {
	current atomic.Pointer[Status]
	changed chan struct{} // capacity 1: the leader changed since the channel was last read
	ready   chan struct{} // see Ready

	// Owned by Run.
	caughtUp   bool              // everything is applied that was committed when a leader was found
	conf       *raftpb.ConfState // of current
	raftTerm   uint64            // of current
	recovered  Level             // the highest level that the data directory had at the start
	lastLeader leaderTerm        // the last known leader
	leadership leadershipStats
	leaders    int64             // see Counts
	joins      map[uint64]uint64 // by member without state: the nonce that was logged
}

type leaderTerm struct{ leader, term uint64 }

func (b *statusBoard) init() {
	b.changed, b.ready, b.joins = make(chan struct{}, 1), make(chan struct{}), make(map[uint64]uint64)
	b.current.Store(&Status{})
}

// Status returns a recent view.
func (n *Node) Status() Status { return *n.status.current.Load() }

// Emptied reports whether this member was started without the data that it has had before.
func (n *Node) Emptied() bool { return n.cfg.FormTicks < 0 && n.Status().Fresh }

// Changed receives a value when the leader changes, or when this member begins or ceases to be
// current. The channel must have a single reader.
func (n *Node) Changed() <-chan struct{} { return n.status.changed }

// Ready is closed when the node knows a leader, and has applied everything that was committed
// anywhere when it found its first leader.
func (n *Node) Ready() <-chan struct{} { return n.status.ready }

func (n *Node) publish() {
	c, b, levels := n.core, &n.status, n.core.Levels.Info()
	s := Status{
		Leader: c.Leader(), Leading: c.Leads(), Term: c.AppliedTerm(), Applied: c.Applied(),
		Current: c.Current(), Fresh: c.Fresh(), Voter: c.Voter(), Outdated: c.Outdated() != "", Reverted: n.reverted,
		Joining: c.Membership.Joining(), LogStalled: c.LogStall.Stalled(), Level: c.Levels.Active(), MaxLevel: levels.Ready,
	}
	old := b.current.Load()
	if s.Leader == 0 {
		s.WithoutData, s.WithData = c.Admission.Inventory()
	}
	s.Relay, s.Relays = c.Relays.Source(), n.peers.relays
	s.Since, s.Progress, s.Voters, s.Learners = old.Since, old.Progress, old.Voters, old.Learners
	if conf := c.Conf(); conf != b.conf {
		b.conf = conf
		s.Voters, s.Learners = slices.Clone(conf.GetVoters()), slices.Clone(conf.GetLearners())
	}
	now := time.Now()
	leaderChanged := old.Leader != s.Leader || old.Leading != s.Leading
	if leaderChanged {
		s.Since = now
	}
	if s.Applied != old.Applied || !c.Waiting() {
		s.Progress = now
	}
	n.logTransition(old, &s)
	if n.cfg.PeerListener != nil && (old.Leader != s.Leader || old.Current != s.Current || old.Applied == 0) {
		change, begun, leaders := b.leadership.update(old, &s, now)
		b.leaders += leaders
		if begun && n.cfg.OnLeaderChange != nil {
			n.cfg.OnLeaderChange(change)
		}
	}
	s.Counts = Counts{
		Leaders: b.leaders, Proposed: c.Proposed(), Resent: c.Resent(), Refused: int64(c.Refused()), Checkpoints: n.peers.received, CaughtUp: n.peers.caughtUp,
	}
	if s.Leading {
		s.Peers = n.peers.peers
	}
	b.current.Store(&s)
	if f := n.following; f != nil && s.Applied >= f.last {
		close(f.done)
		n.following = nil
	}
	if leaderChanged || old.Current != s.Current {
		wakeup.Send(b.changed)
	}
	n.network.setIncarnations(c)
	if c.Cluster() != n.network.cluster.Load() {
		n.network.joinCluster(c.Cluster())
	}
	n.network.setLevels(levels)
	if s.Current && b.caughtUp {
		select {
		case <-b.ready:
		default:
			close(b.ready)
		}
	}
}
