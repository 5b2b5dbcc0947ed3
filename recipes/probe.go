package recipes

import (
	"time"

	"github.com/go-zookeeper/zk"
)

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
	if k.conn.State() != zk.StateHasSession {
		if k.wrapped { // the connection may have dropped the event
			k.markSuspended()
		}
		return false
	}
	session, latest := k.conn.SessionID(), answeredSync{server: k.conn.Server(), sent: k.now()}
	k.activeProbes.add()
	_, err := k.conn.Sync("/")
	k.activeProbes.done()
	latest.answered = k.now()
	_ = k.noteDemand(err) // the next connection is put off
	if err != nil || session == 0 || k.conn.SessionID() != session || k.conn.Server() != latest.server {
		return false
	}
	heard := p.lastHeard(session, time.Duration(k.timeout.Load()), latest)
	k.sessionHeard(session, heard)
	return true
}

// sessionHeard notes that the leader heard of the session id at heard or later.
func (k *core) sessionHeard(id int64, heard time.Duration) {
	s := k.currentSession()
	if s != nil && s.id == id && s.extend(heard) {
		if k.wrapped {
			k.markConnected()
		}
		return
	}
	if !k.wrapped {
		return // sessionConn reports new sessions
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

// deleteEphemerals deletes the ephemerals of a session that the Client has given up and that a
// wrapped connection keeps alive. The error is that of the connection.
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

// endReplacedSession ends the Client's session if a wrapped connection already has a new session,
// whose events may arrive late. A connection of Connect reports a new session before sending
// requests in it.
func (k *core) endReplacedSession() {
	if !k.wrapped {
		return
	}
	if s := k.currentSession(); s != nil && s.id != k.conn.SessionID() {
		s.end(ErrSessionLost)
	}
}

// followEvents reads the events of a wrapped connection.
func (k *core) followEvents() {
	for {
		select {
		case e, open := <-k.events:
			if !open {
				if s := k.currentSession(); s != nil {
					s.end(ErrSessionLost) // somebody has closed the connection
				}
				return
			}
			k.event(e)
		case <-k.closing:
			return
		}
	}
}
