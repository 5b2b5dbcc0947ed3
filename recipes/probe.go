package recipes

import "time"

// probeLoop sends syncs through the server to the leader, several per session timeout, until the
// Client is closed, and owns the livenessProof. It sends more of them while requests are under way,
// and does not await one before the next: answers to earlier requests may be on their way.
func (k *core) probeLoop() {
	var p livenessProof
	answers := make(chan answeredSync)
	quiet := busyFactor // ticks since the latest probe
	late := 0           // successive ticks at which the proof was late
	unanswered := 0
	send := func() {
		if unanswered < maxProbes && k.probe(answers) {
			unanswered++
			quiet = 0
		}
	}
	send() // the first probe needs no timer
	t := time.NewTimer(k.probeInterval())
	defer t.Stop()
	for {
		select {
		case <-t.C:
			t.Reset(k.probeInterval())
			timeout := time.Duration(k.timeout.Load())
			s := k.currentSession()
			if late++; s == nil || s.ended.Load() || s.remaining() > timeout/lateProofShare {
				late = 0
			} else if late == lateTicks {
				k.conn.leaveServer()
			}
			if quiet++; quiet < busyFactor && !k.window.busy() {
				continue
			}
		case <-k.probeSoon:
		case latest := <-answers:
			unanswered--
			if latest.session == 0 {
				quiet = busyFactor
			} else {
				at, proven := p.lastHeard(latest.session, time.Duration(k.timeout.Load()), latest)
				k.conn.heard(latest.session, at, proven)
			}
			continue
		case <-k.closing:
			return
		}
		send()
	}
}

func (k *core) probeInterval() time.Duration {
	return time.Duration(k.timeout.Load()) / (busyFactor * probesPerTimeout)
}

// probe sends a sync, unless there is no connection, and the outcome to answers. The session of a
// sync without an answer is 0.
func (k *core) probe(answers chan<- answeredSync) bool {
	session, server := k.conn.place()
	if session == 0 || !k.activeProbes.tryAdd() {
		return false
	}
	sent := k.clock.now()
	// Ends when the connection answers or gives up. Close waits.
	go func() {
		defer k.activeProbes.done()
		err := k.conn.sync(k.ctx, "/")
		latest := answeredSync{session: session, server: server, sent: sent, answered: k.clock.now()}
		if again, server := k.conn.place(); err != nil || again != session || server != latest.server {
			latest.session = 0
		}
		select {
		case answers <- latest:
		case <-k.closing:
		}
	}()
	return true
}

// Only the leader knows whether a session is alive. The client's server reports to the leader which
// sessions it has heard from. A server that is cut off from the leader keeps answering for
// syncLimit ticks (10 s in ZooKeeper's default configuration) while the leader expires the sessions
// of its clients. So only an answer that needs the leader, such as that of a sync, proves that the
// session is alive. See docs/internals/recipes.md.

const (
	// probesPerTimeout is how many syncs are sent per session timeout. Two intervals between syncs
	// must be longer than the interval between the server's reports.
	probesPerTimeout = 6
	// busyFactor is how many times more often syncs are sent while requests are under way.
	busyFactor = 3
	// maxProbes is how many syncs may be unanswered: those of a session timeout.
	maxProbes = busyFactor * probesPerTimeout
	// When less than this share of a timeout is left, for two ticks, the Client leaves the server,
	// which is cut off or has a backlog. Resuming the session on another connection is a proof. A
	// process that was stopped sees one such tick before it has read what has arrived.
	lateProofShare = 5
	lateTicks      = 2
	// reportShare: the server reports to the leader twice per tick, and a session timeout is at
	// least two ticks.
	reportShare = 4
	// pingShare: go-zookeeper pings three times per timeout.
	pingShare = 3
	// marginShare: client and server may drift apart by this share of the timeout within one.
	marginShare = 64
)

type answeredSync struct {
	session        int64
	server         string
	sent, answered time.Duration
}

// livenessProof tells from answered syncs when the leader last heard of the session, for probeLoop.
type livenessProof struct {
	session int64
	probes  []answeredSync // the latest last; no more than can still matter
}

// lastHeard adds an answered sync and returns a time at which, or after which, the leader heard of
// the session. Without an earlier sync that matters this is not proven: the leader may have heard
// of it earlier, if a ping was late.
func (p *livenessProof) lastHeard(session int64, timeout time.Duration, latest answeredSync) (heard time.Duration, proven bool) {
	if session != p.session || len(p.probes) > 0 && p.probes[len(p.probes)-1].server != latest.server {
		// a sync through one server proves nothing about another server's reports
		p.session, p.probes = session, nil
	}
	reported := latest.sent - timeout/reportShare
	heard = reported - timeout/pingShare
	// keep the latest sync that was answered before the report
	for len(p.probes) > 0 && p.probes[0].answered <= reported {
		heard, proven = p.probes[0].sent, true
		if len(p.probes) == 1 || p.probes[1].answered > reported {
			break
		}
		p.probes = p.probes[1:]
	}
	p.probes = append(p.probes, latest)
	return heard, proven
}

// lifetime returns how long a session lives after the leader last heard of the session, by the
// client's clock.
func lifetime(timeout time.Duration) time.Duration { return timeout - timeout/marginShare }
