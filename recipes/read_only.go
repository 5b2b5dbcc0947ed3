package recipes

import (
	"errors"

	"github.com/gozkd/gozkd/client"
)

// AcceptReadOnly lets Connect's Client read from a server in read-only mode, one that has lost its
// quorum, while no other server grants a session: Curator's canBeReadOnly. The state is then
// ReadOnly, also when Connect returns. Reads are answered from a state that is at least as new as
// all that the Client has seen. All else is retried as on a lost connection; the error is
// proto.ErrNotReadOnly.
//
// In contrast to Curator, ReadOnly follows Lost and not Suspended: only a quorum knows whether a
// session is alive, so a server in read-only mode never resumes the Client's session. Session is
// the lost session, or one with ID 0 if there was none yet. Recipes wait for the next session, and
// caches keep their content. When a server grants a session, the state becomes Reconnected. The
// option has no effect on Wrap.
func AcceptReadOnly() Option { return func(c *config) { c.readOnly = true } }

var errOneConnection = errors.New("a reader has one connection, to a server in read-only mode")

// openReader connects to a server in read-only mode if the Client accepts such servers and is not
// connected to one. Only the goroutine of run calls openReader, while there is no session.
//
// A reader claims to have seen what the Client has seen, so that no server answers from an earlier
// state. Otherwise a read after a sync could show less than the sync promised.
func (n *native) openReader() {
	if !n.k.cfg.readOnly || n.keepReader() {
		return
	}
	connected := false
	cfg := n.cfg
	n.mu.Lock()
	cfg.ReadOnly, cfg.LastZxid = true, n.seen
	n.mu.Unlock()
	cfg.OnConnect = func(s client.Session) error {
		if !s.ReadOnly || connected {
			return errOneConnection // the next call of openReader makes the next reader
		}
		connected = true
		return nil
	}
	cfg.OnEvent = n.readerEvent
	reader, err := client.Connect(n.k.ctx, cfg)
	if err != nil {
		return
	}
	n.mu.Lock()
	n.replace(nil, reader)
	n.mu.Unlock()
	n.keepReader()
}

// noteSeen is called after the session of conn has ended.
func (n *native) noteSeen(conn *client.Client) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = max(n.seen, conn.LastZxid())
}

// keepReader reports whether there is a reader that is connected, and drops another.
func (n *native) keepReader() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reader == nil {
		return false
	}
	if n.reader.State() != client.ReadOnly {
		n.dropReader()
		return false
	}
	n.k.markReadOnly()
	return true
}

// dropReader must be called with n.mu held.
func (n *native) dropReader() {
	n.replace(n.conn, nil)
	n.k.leaveState(Lost, ReadOnly)
}

func (n *native) readerEvent(e client.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.reader == nil:
	case e.Type != client.EventSession:
		n.fireEvent(e)
	case e.State != client.ReadOnly:
		n.dropReader()
	}
}

// leave ends the session of conn if there is a connection.
func (n *native) leave(conn *client.Client) {
	if conn.Session().Server == "" {
		conn.Detach()
	} else if err := conn.Close(); err != nil {
		n.k.cfg.log.Warn("close", "error", err)
	}
}

func (k *core) markReadOnly() {
	if k.currentSession() == nil {
		s := newSession(0, k.clock, k.clock.now(), 0, k.sessionLost)
		s.end(ErrSessionLost)
		k.setSession(s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.state {
	case Connecting:
		k.setState(ReadOnly)
		close(k.ready)
	case Lost:
		k.setState(ReadOnly)
	}
}
