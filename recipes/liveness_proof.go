package recipes

import "time"

// The session's life is known to the leader alone; the server that the client is connected to reports whom it heard from. A server
// that is cut off from the leader answers on, for syncLimit ticks (10 s, as ZooKeeper is configured), while the leader lets its sessions
// expire. So an answer proves something only if it came from the leader, as that to a sync does. See docs/internals/recipes.md.

const (
	// probesPerTimeout is how often a sync is sent. Two of its intervals must be more than the reporting interval.
	probesPerTimeout = 6
	// reportShare: reports of who was heard from go to the leader twice a tick, and a session timeout is two ticks at least.
	reportShare = 4
	// pingShare is how often go-zookeeper sends a ping.
	pingShare = 3
	// marginShare of the timeout is what clocks of client and server may differ in rate over one timeout.
	marginShare = 64
)

// probe is a sync that was answered.
type answeredSync struct {
	server         string
	sent, answered time.Duration
}

// proof turns answered probes into what is known of the session's life. One goroutine owns it.
type livenessProof struct {
	session int64
	probes  []answeredSync // the newest last, as few as can still count
}

// alive returns the moment at which the leader surely counted the session as heard from, or later, given one more answered probe.
// Without a probe before it that can count, it relies on the connection's own pings.
func (p *livenessProof) lastHeard(session int64, timeout time.Duration, latest answeredSync) time.Duration {
	if session != p.session || len(p.probes) > 0 && p.probes[len(p.probes)-1].server != latest.server {
		p.session, p.probes = session, nil // what another server reported is not proved by this one's answer
	}
	reported := latest.sent - timeout/reportShare
	heard := reported - timeout/pingShare
	for len(p.probes) > 0 && p.probes[0].answered <= reported { // the last that holds is the one to keep
		heard = max(heard, p.probes[0].sent)
		if len(p.probes) == 1 || p.probes[1].answered > reported {
			break
		}
		p.probes = p.probes[1:]
	}
	p.probes = append(p.probes, latest)
	return heard
}

// lifetime is for how long after it was heard from a session lives, by the client's clock.
func lifetime(timeout time.Duration) time.Duration { return timeout - timeout/marginShare }
