package recipes

import "time"

// probeLoop sends syncs through the server to the leader, several per session timeout, until the
// Client is closed, and owns the livenessProof.
func (k *core) probeLoop() {
	var p livenessProof
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-k.probeSoon:
		case <-k.closing:
			return
		}
		if k.probeOnce(&p) {
			t.Reset(time.Duration(k.timeout.Load()) / probesPerTimeout)
		} else {
			t.Reset(time.Duration(k.timeout.Load()) / (4 * probesPerTimeout))
		}
	}
}

// probeOnce sends a sync and reports whether the sync was answered.
func (k *core) probeOnce(p *livenessProof) bool {
	session, server := k.prober.place()
	if session == 0 {
		return false
	}
	latest := answeredSync{server: server, sent: k.now()}
	k.activeProbes.add()
	err := k.prober.sync(k.ctx, "/")
	k.activeProbes.done()
	latest.answered = k.now()
	if again, server := k.prober.place(); err != nil || again != session || server != latest.server {
		return false
	}
	k.prober.heard(session, p.lastHeard(session, time.Duration(k.timeout.Load()), latest))
	return true
}
