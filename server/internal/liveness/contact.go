package liveness

import (
	"sync"
	"time"
)

// Contact follows when this server was last in touch with a leader, and what its reports to the
// leader must say. Contact is safe for concurrent use; its lock is a leaf.
type Contact struct {
	Tick time.Duration

	mu sync.Mutex // guards the rest
	// followedSince is when the last leadership of another server began; zero: there was none since
	// this server started or led.
	followedSince time.Time
	confirmed     time.Time // when a leader last said that it hears this server
	// The leader of the term has named the time leaderMs in its last answer.
	leaderMs, term uint64
	// Everything that was heard before reportedUntil has reached the leader. reportedAt is the time
	// of the last report, which was answered, or not yet. Both times are by Config.Now.
	reportedUntil, reportedAt time.Time
	answered                  bool
}

// Last returns when this server was last in touch with a leader. Without a leader, that is when the
// leader was lost. If the lost leader had not confirmed for more than a tick that it hears this
// server, it is when the leader last did so, or when its leadership began. leading: this server
// leads; known: there is a leader; since: when that last changed.
func (c *Contact) Last(leading, known bool, since, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case leading:
		c.followedSince = time.Time{}
		return now
	case known:
		c.followedSince = since
		return later(since, c.confirmed)
	case c.followedSince.IsZero():
		return since
	}
	if last := later(c.followedSince, c.confirmed); since.Sub(last) > c.Tick {
		return last
	}
	return since
}

// Answered records that the leader of a term, 0 if it is not known, has answered a report. ms is
// the time that the answer names, if it names one. Under another leader that time means nothing.
func (c *Contact) Answered(term, ms uint64, named bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed, c.answered = now, true
	if named && term != 0 {
		c.leaderMs, c.term = ms, term
	}
}

// NextReport begins a report at now, by Config.Now, to the leader of a term. It returns after which
// time the sessions in the report were heard from, and the time in the leader's last answer, or 0.
// Each report begins a tick before the last, because the leader's answer may be to an earlier one.
func (c *Contact) NextReport(term uint64, now time.Time) (heardAfter time.Time, leaderMs uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		c.reportedUntil = c.reportedAt.Add(-c.Tick)
	}
	c.reportedAt, c.answered = now, false
	if c.term == term {
		leaderMs = c.leaderMs
	}
	return c.reportedUntil, leaderMs
}
