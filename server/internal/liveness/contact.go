package liveness

import "time"

// Contact follows when this server was last in touch with a leader. A Contact is not safe for
// concurrent use.
type Contact struct {
	Tick time.Duration
	// followedSince is when the last leadership of another server began; zero: there was none since
	// this server started or led.
	followedSince time.Time
}

// Last returns when this server was last in touch with a leader. Without a leader, that is when the
// leader was lost. If the lost leader had not confirmed for more than a tick that it hears this
// server, it is when the leader last did so, or when its leadership began.
//
//	leading    this server leads
//	known      there is a leader
//	since      when the leadership last changed
//	confirmed  when a leader last confirmed that it hears this server
func (c *Contact) Last(leading, known bool, since, confirmed, now time.Time) time.Time {
	switch {
	case leading:
		c.followedSince = time.Time{}
		return now
	case known:
		c.followedSince = since
		return later(since, confirmed)
	case c.followedSince.IsZero():
		return since
	}
	if last := later(c.followedSince, confirmed); since.Sub(last) > c.Tick {
		return last
	}
	return since
}
