package recipes

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// probe asks the leader, through the server, a few times per session timeout, whether all is well. It alone owns the proof.
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

func (k *core) probeNow() {
	select {
	case k.probeSoon <- struct{}{}:
	default:
	}
}

// probeOnce reports whether the server answered.
func (k *core) probeOnce(p *livenessProof) bool {
	if k.conn.State() != zk.StateHasSession {
		if k.wrapped { // the event may have been dropped
			k.markSuspended()
		}
		return false
	}
	session, latest := k.conn.SessionID(), answeredSync{server: k.conn.Server(), sent: k.now()}
	k.activeProbes.add()
	_, err := k.conn.Sync("/")
	k.activeProbes.done()
	latest.answered = k.now()
	if err != nil || session == 0 || k.conn.SessionID() != session || k.conn.Server() != latest.server {
		return false
	}
	heard := p.lastHeard(session, time.Duration(k.timeout.Load()), latest)
	k.sessionHeard(session, heard)
	return true
}

// proved notes that the leader heard of the session then, or later.
func (k *core) sessionHeard(id int64, heard time.Duration) {
	s := k.currentSession()
	if s != nil && s.id == id && s.extend(heard) {
		if k.wrapped {
			k.markConnected()
		}
		return
	}
	if !k.wrapped {
		return // the wire tells of new sessions
	}
	if s != nil {
		s.end(ErrSessionLost)
		if s.id == id && k.deleteEphemerals(id) != nil {
			return
		}
	}
	k.setSession(newSession(id, k.clock, heard, time.Duration(k.timeout.Load()), k.sessionLost))
	k.markConnected()
}

// deleteEphemerals deletes what was made in a session of a wrapped connection that is over for the Client and is alive: those who held it have
// let it go. The error is that of the connection.
func (k *core) deleteEphemerals(session int64) error {
	k.mu.Lock()
	paths := make([]string, 0, len(k.ephemerals))
	for path := range k.ephemerals {
		paths = append(paths, path)
	}
	k.mu.Unlock()
	for _, path := range paths {
		_, stat, err := k.conn.Exists(path)
		if err == nil && stat != nil && stat.EphemeralOwner == session {
			err = k.conn.Delete(path, -1)
		}
		if err != nil && classify(err) != answered {
			return err
		}
		k.forgetEphemeral(path)
	}
	return nil
}

func (k *core) rememberEphemeral(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ephemerals != nil {
		k.ephemerals[path] = struct{}{}
	}
}

func (k *core) forgetEphemeral(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ephemerals, path)
}

// endOutdated ends the session that the Client takes for the present one if a wrapped connection has another by now, whose events may come late.
// Connect's connections tell of it before they send anything in the next.
func (k *core) endReplacedSession() {
	if !k.wrapped {
		return
	}
	if s := k.currentSession(); s != nil && s.id != k.conn.SessionID() {
		s.end(ErrSessionLost)
	}
}

// follow reads a wrapped connection's events.
func (k *core) followEvents() {
	for {
		select {
		case e, open := <-k.events:
			if !open {
				k.connectionClosed()
				return
			}
			k.event(e)
		case <-k.closing:
			return
		}
	}
}

// ended is called when somebody has closed the wrapped connection.
func (k *core) connectionClosed() {
	if s := k.currentSession(); s != nil {
		s.end(ErrSessionLost)
	}
}
