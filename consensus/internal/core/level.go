package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Level is a feature level: it decides which request kinds and formats the members of an ensemble
// may use. The ensemble has one active level, which is part of the replicated state, and never
// falls. See docs/adr/0006-feature-levels.md.
type Level uint64

// Level4 is everything that the first release reads and writes. A level is never changed or reused:
// lower ones were those of versions before it.
const Level4 Level = 4

// SupportedLevels are the levels of this program.
var SupportedLevels = LevelRange{Min: Level4, Max: Level4}

// LevelRange is a range of levels, including both ends.
type LevelRange struct{ Min, Max Level }

// Has reports whether the range includes a level.
func (r LevelRange) Has(l Level) bool { return r.Min <= l && l <= r.Max }

// String returns "2", or "1 to 3".
func (r LevelRange) String() string {
	if r.Min == r.Max {
		return strconv.FormatUint(uint64(r.Min), 10)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

// ErrLevel is wrapped by errors about data of a level that this program does not support.
var ErrLevel = errors.New("unsupported feature level")

// Check returns an error that wraps ErrLevel if the range does not include the level of what.
func (r LevelRange) Check(l Level, what string) error {
	if r.Has(l) {
		return nil
	}
	return fmt.Errorf("consensus: %w: %s has level %d, this program supports %v: start a version of gozkd that supports level %d",
		ErrLevel, what, l, r, l)
}

// LevelInfo has a member's levels, which it tells another when they connect.
type LevelInfo struct {
	Supported LevelRange
	// Ready is the highest level that the member agrees to activate.
	Ready Level
	// Active is the active level of the member's state; 0: the member has no state.
	Active Level
}

// Append encodes the info.
func (i LevelInfo) Append(b []byte) []byte {
	return appendUvarints(b, uint64(i.Supported.Min), uint64(i.Supported.Max), uint64(i.Ready), uint64(i.Active))
}

// DecodeLevelInfo reads the output of Append.
func DecodeLevelInfo(r *Uvarints) LevelInfo {
	next := func() Level { return Level(r.Next()) }
	return LevelInfo{Supported: LevelRange{next(), next()}, Ready: next(), Active: next()}
}

// CheckPeers returns why members a and b must not talk to each other, or nil.
func CheckPeers(a uint64, ofA LevelInfo, b uint64, ofB LevelInfo) error {
	for range 2 {
		if ofA.Active != 0 && !ofB.Supported.Has(ofA.Active) {
			return fmt.Errorf("the ensemble of member %d has feature level %d, member %d supports %v: start member %d with a version of gozkd that supports level %d",
				number(a), ofA.Active, number(b), ofB.Supported, number(b), ofA.Active)
		}
		a, ofA, b, ofB = b, ofB, a, ofA
	}
	return nil
}

// Levels holds the active level, and raises the level once all members agree. The active level
// never falls, and this member always supports it.
type Levels struct {
	*raftState
	supported LevelRange
	limit     Level                // the highest level that this member agrees to activate; 0: no limit
	active    Level                // replicated
	peers     map[uint64]LevelInfo // of the connected members
	proposed  bool                 // the leader's change of the level is not applied yet
	checkDue  bool                 // a field above has changed, or the leader, or the membership
}

func newLevels(m *raftState, cfg *Config) (*Levels, error) {
	l := &Levels{
		raftState: m, supported: cfg.Levels, limit: cfg.LevelLimit, active: cfg.Meta.Level,
		peers: make(map[uint64]LevelInfo), checkDue: true,
	}
	if l.supported == (LevelRange{}) {
		l.supported = SupportedLevels
	}
	if cfg.Meta.Conf == nil {
		l.active = l.supported.Min
	}
	return l, l.supported.Check(l.active, "the data")
}

// ready returns the highest level that this member agrees to activate.
func (l *Levels) ready() Level {
	ready := l.supported.Max
	if l.limit != 0 {
		ready = min(ready, l.limit)
	}
	return max(ready, l.active)
}

// Active returns the active level.
func (l *Levels) Active() Level { return l.active }

// recheck makes the leader look whether the level may rise: the membership may have changed.
func (l *Levels) recheck() { l.checkDue = true }

func (l *Levels) leadershipChanged() { l.proposed, l.checkDue = false, true }

// installed takes over the level of a checkpoint.
func (l *Levels) installed(active Level) { l.active, l.checkDue = max(l.active, active), true }

// Info returns this member's levels, for other members.
func (l *Levels) Info() LevelInfo {
	i := LevelInfo{Supported: l.supported, Ready: l.ready(), Active: l.active}
	if l.applied == 0 { // also when the member was let in, until it has a checkpoint
		i.Active = 0
	}
	return i
}

// SetLimit sets the highest level that this member agrees to activate; 0: no limit. The other
// members must be told.
func (l *Levels) SetLimit(limit Level) { l.limit, l.checkDue = limit, true }

func (l *Levels) unreachable(peer uint64) { delete(l.peers, peer) }

// SetPeer notes the levels that a member announced when it connected.
func (l *Levels) SetPeer(peer uint64, info LevelInfo) {
	l.peers[peer], l.checkDue = info, true
}

// propose raises the level if all members, and all that the target adds, are ready for a higher
// level. A member that is not connected is not ready: nobody knows which version starts there.
func (l *Levels) propose(nowMs int64, t Target) error {
	if !l.checkDue || l.proposed {
		return nil
	}
	next, conf := l.ready(), l.conf
	for _, id := range slices.Concat(conf.GetVoters(), conf.GetLearners(), conf.GetVotersOutgoing(), t.Voters, t.Learners) {
		if id != l.id {
			next = min(next, l.peers[id].Ready)
		}
	}
	if next <= l.active {
		l.checkDue = false
		return nil
	}
	switch err := l.raft.Propose(appendLevelChange(nil, nowMs, next)); {
	case errors.Is(err, raft.ErrProposalDropped):
		return nil // leadership is being handed over; a tick or its end comes back here
	case err != nil:
		return fmt.Errorf("consensus: propose feature level %d: %w", next, err)
	}
	l.proposed, l.checkDue = true, false
	return nil
}

// levelChangeVersion is the first byte of an entry that changes the level, where a batch has
// batchVersion.
const levelChangeVersion = 2

func appendLevelChange(b []byte, timeMs int64, l Level) []byte {
	return appendUvarints(append(b, levelChangeVersion), uint64(timeMs), uint64(l))
}

// decodeLevelChange reads the output of appendLevelChange. Other bytes have level 0.
func decodeLevelChange(b []byte) (timeMs int64, l Level) {
	if len(b) == 0 || b[0] != levelChangeVersion {
		return 0, 0
	}
	r := Uvarints{Rest: b[1:]}
	timeMs, l = int64(r.Next()), Level(r.Next())
	if r.Bad || len(r.Rest) > 0 {
		return 0, 0
	}
	return timeMs, l
}

// EntryLevel returns the level that an entry activates; 0: none.
func EntryLevel(e *raftpb.Entry) (l Level) {
	if e.GetType() == raftpb.EntryNormal {
		_, l = decodeLevelChange(e.GetData())
	}
	return l
}

// EntryTime returns the time of an entry with a batch or a level change, in ms; 0: it has none.
func EntryTime(e *raftpb.Entry) (ms int64) {
	b := e.GetData()
	if e.GetType() != raftpb.EntryNormal || len(b) == 0 || b[0] != batchVersion && b[0] != levelChangeVersion {
		return 0
	}
	r := Uvarints{Rest: b[1:]}
	return int64(r.Next())
}

func (l *Levels) apply(e *raftpb.Entry) (timeMs int64, err error) {
	timeMs, next := decodeLevelChange(e.GetData())
	if err := l.supported.Check(max(l.active, next), fmt.Sprintf("entry %d of the log", e.GetIndex())); err != nil {
		return 0, err
	}
	l.active = max(l.active, next) // two leaders may have proposed it
	l.proposed, l.checkDue = false, true
	return timeMs, nil
}
