package consensus

import "time"

// Counts counts events since Open. All counts only grow.
type Counts struct {
	Leaders     int64 // a leader became known, which may be the previous leader
	Proposed    int64 // leading: requests that went into an entry
	Refused     int64 // messages of other members that make no sense
	Resent      int64 // requests of this member that were sent again because their outcome was unknown
	Checkpoints int64 // leading: checkpoints that other members received
	CaughtUp    int64 // leading: members that came into step from the log alone
}

// LeaderChange describes how long it took until this member could work under a leader.
type LeaderChange struct {
	Leading, Voter bool
	Searched       time.Duration // until the leader was known; 0: it followed another leader at once
	CaughtUp       time.Duration // from then until its first entry was applied here
	Unavailable    time.Duration // since this member could last work under a leader; 0: it never could
}

// leadershipStats follows changes of the leader. All times are of a clock that does not jump.
type leadershipStats struct {
	searchingSince time.Time // no leader is known since then; zero: a leader is known
	knownSince     time.Time // the leader is known since then
	current        bool
	lostAt         time.Time // when this member ceased to be current; zero: it never was
	searched       time.Duration
}

// update takes the previous and the new status. begun says that this member can now work under
// another leader, which change describes.
func (l *leadershipStats) update(old, s *Status, now time.Time) (change LeaderChange, begun bool, leaders int64) {
	if l.searchingSince.IsZero() && l.knownSince.IsZero() {
		l.searchingSince = now
	}
	switch {
	case s.Leader == 0 && old.Leader != 0:
		l.searchingSince = now
	case s.Leader != 0 && s.Leader != old.Leader:
		leaders = 1
		l.knownSince, l.searched = now, 0
		if !l.searchingSince.IsZero() {
			l.searched = now.Sub(l.searchingSince)
		}
		l.searchingSince = time.Time{}
	}
	switch {
	case l.current && !s.Current:
		l.current, l.lostAt = false, now
	case s.Current && !l.current:
		l.current = true
		change = LeaderChange{Leading: s.Leading, Voter: s.Voter, Searched: l.searched, CaughtUp: now.Sub(l.knownSince)}
		if !l.lostAt.IsZero() {
			change.Unavailable = now.Sub(l.lostAt)
		}
		return change, true, leaders
	}
	return LeaderChange{}, false, leaders
}
