package core

import "go.etcd.io/raft/v3"

const (
	// restHeartbeatTicks is how often a leader at rest makes itself heard: three times in the
	// shortest election timeout.
	restHeartbeatTicks = 3
	// maxRestTicks is the most ticks that a member of an ensemble at rest takes at once. A follower
	// hears from its leader more often. A leader that is silent for that long makes the follower
	// take each tick by itself, long before the election timeout.
	maxRestTicks = 2 * restHeartbeatTicks
)

// rest tells whether the ensemble is at rest: nothing waits, and nothing has happened for an
// election timeout except heartbeats. Then most ticks have no effect but to be counted.
type rest struct {
	applied uint64 // at the last tick
	quiet   int    // ticks since something happened
	settled bool   // as the leader: all members are there, and have all entries
	beat    int    // as the leader at rest: ticks of the present round, see holdsTick
}

// tickRest must be called after the other timers have advanced.
func (k *Clock) tickRest() {
	r := &k.rest
	r.quiet++
	if k.applied != r.applied || !k.quiet() {
		r.applied, r.quiet = k.applied, 0
	}
	r.settled = k.role == raft.StateLeader && r.quiet > 0
	if r.settled {
		k.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
			if pr.Match != k.applied || k.membership.silentFor(id) > maxRestTicks {
				r.settled = false
			}
		})
	}
}

// RestTicks returns how many ticks may pass until the next must be taken, if nothing happens
// before. The ticks that have passed must be taken together before anything that happens, so that
// timers show the same time to every message as without rest. The result is 1 except at rest.
func (k *Clock) RestTicks() int {
	r := &k.rest
	switch {
	case r.quiet < ElectionTicks || r.applied != k.applied || !k.quiet():
	case k.role != raft.StateLeader:
		return max(maxRestTicks-k.leaderSilence, 1)
	case r.settled:
		return restHeartbeatTicks
	}
	return 1
}

// holdsTick reports whether this tick must not reach raft. At rest a leader's raft gets
// heartbeatTicks of restHeartbeatTicks, so the leader sends fewer heartbeats. Raft also checks
// later whether the quorum is there: a leader that is cut off steps down after up to 30 ticks
// instead of 20. That delays no election, since the others elect by their own clocks. A member
// whose clock is stretched never rests.
func (k *Clock) holdsTick() bool {
	r := &k.rest
	if k.role != raft.StateLeader || k.RestTicks() == 1 {
		r.beat = 0
		return false
	}
	r.beat = (r.beat + 1) % restHeartbeatTicks
	return r.beat == 0
}
