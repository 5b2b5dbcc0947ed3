package recipes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
)

// native is the transport of Connect: one client.Client after another, each of which is a session.
type native struct {
	k   *core
	cfg client.Config

	mu      sync.Mutex              // guards the fields below; never held while waiting
	ended   bool                    // close was called: no other session begins
	conn    *client.Client          // of the current session; nil if there is none
	seen    proto.Zxid              // the greatest that ended sessions and readers have seen
	reader  *client.Client          // connected to a server in read-only mode, or nil; only while conn is nil
	changed wakeup.Broadcast        // sent when conn or reader changes
	watches watchTable              // of conn or reader
	trees   map[*treeWatch]struct{} // the persistent watches

	// treeTurn has capacity 1 and holds a value while a persistent watch is added or removed, which
	// ends with the session at the latest.
	treeTurn chan struct{}
}

const (
	firstPause = 10 * time.Millisecond
	// longPause bounds the pauses between attempts to get a session, and the wait for a session of
	// a request that has entered the window. The wait to enter is bounded by window.sweep.
	longPause = time.Second
)

func newNative(k *core, servers []string) *native {
	n := &native{
		k: k, watches: make(watchTable), trees: make(map[*treeWatch]struct{}),
		treeTurn: make(chan struct{}, 1),
	}
	n.cfg = client.Config{
		Servers: servers, SessionTimeout: k.cfg.timeout, ConnectTimeout: k.cfg.timeout / 3,
		Dial: func(_ context.Context, address string) (net.Conn, error) {
			return k.cfg.dialer("tcp", address, longPause)
		},
		MaxRequest: k.cfg.maxRequest, MaxBuffer: k.cfg.maxReply, Auths: k.cfg.auth,
		SASL: k.cfg.sasl, Logger: k.cfg.log, Hooks: client.Hooks{Reconnect: k.cfg.hooks.Reconnect},
	}
	if k.cfg.secure != nil {
		n.cfg.Dial = k.cfg.secure(n.cfg.Dial)
	}
	return n
}

// run provides sessions until the Client is closed.
func (n *native) run() {
	for {
		conn := n.connect()
		if conn == nil {
			n.publish(nil)
			return
		}
		s := n.k.currentSession()
		select {
		case <-conn.Done():
		case <-s.inner.Done():
			if n.k.isClosed() {
				<-conn.Done() // close ends the session on the server
			}
		}
		err := conn.Err()
		s.end(n.lost(err))
		n.publish(nil)
		conn.Detach()
		n.noteSeen(conn)
		switch {
		case n.k.isClosed(), errors.Is(err, proto.ErrSessionExpired):
		case errors.Is(err, proto.ErrSessionClosedRequireSASLAuth):
			backoff.Sleep(n.k.ctx, longPause) // the session had nothing, and the next will end like this
		default:
			n.endOnServer(conn.Session())
		}
	}
}

// lost returns the cause of the end of a session, and logs why the servers say it ended, if err has
// that: the session may have ended by its clock, without a reason, before.
func (n *native) lost(err error) error {
	var told *client.ExpiredError
	if !errors.As(err, &told) {
		return ErrSessionLost
	}
	n.k.cfg.log.Warn("the session has ended", "story", told.Story)
	return fmt.Errorf("%w: %w", ErrSessionLost, told)
}

// connect returns the Client of a new session, or nil when the recipes' Client is closed.
func (n *native) connect() (conn *client.Client) {
	first := n.k.currentSession() == nil
	n.retry(func() bool {
		var err error
		if conn, err = n.newSession(); err == nil {
			n.treeTurn <- struct{}{}
			err = n.watchTreesAgain(conn)
			published := err == nil && n.publish(conn)
			<-n.treeTurn
			if published {
				if n.k.markConnected(); !first {
					n.cfg.Hooks.Reconnect(conn.Session().Server)
				}
				return true
			}
			_ = conn.Close() // the session has nothing
			conn = nil
			if err == nil {
				return true
			}
		}
		if s := n.k.currentSession(); s != nil { // granted, and then the credentials were refused
			s.end(ErrSessionLost)
		}
		err = oneLine{errors.Unwrap(err)} // without the words "client: no session"
		n.k.connectFailed(err)
		if errors.Is(err, proto.ErrAuthFailed) {
			n.k.cfg.log.Error("no session: the credentials were refused", "error", err)
			select {
			case n.k.refused <- err:
			default: // Connect has returned, or gets an earlier error
			}
		}
		return false
	})
	return conn
}

// retry calls try until try is done or the Client is closed, with pauses.
func (n *native) retry(try func() (done bool)) {
	for pause := firstPause; n.k.ctx.Err() == nil && !try(); pause = min(2*pause, longPause) {
		n.openReader()
		// The random part keeps the clients of a server that was lost from all arriving at once.
		backoff.Sleep(n.k.ctx, pause/2+rand.N(pause/2))
	}
}

// newSession tries each server once. The leader hears of the session when it is opened or resumed,
// no earlier than the connection was dialed.
func (n *native) newSession() (*client.Client, error) {
	var dialed time.Duration // only the goroutine that connects uses it
	cfg := n.cfg
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		dialed = n.k.clock.now()
		return n.cfg.Dial(ctx, address)
	}
	cfg.OnConnect = func(s client.Session) error {
		if !n.k.sessionGranted(s.ID, s.Timeout, dialed) && !n.k.isClosed() { // close ends the session on the server
			return ErrSessionLost
		}
		return nil
	}
	cfg.OnEvent = n.event
	return client.Connect(n.k.ctx, cfg)
}

// endOnServer ends a session that the Client has given up, so that its ephemerals are gone before
// the next session begins. Its handshake claims to have seen nothing, since the servers may have
// lost their data.
func (n *native) endOnServer(s client.Session) {
	cfg := n.cfg
	cfg.Resume = &s
	n.retry(func() bool {
		conn, err := client.Connect(n.k.ctx, cfg)
		if err == nil {
			err = conn.Close()
		}
		_ = n.lost(err)
		return err == nil || errors.Is(err, proto.ErrSessionExpired)
	})
}

// publish makes conn the current Client of package client, unless close was called.
func (n *native) publish(conn *client.Client) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended && conn != nil {
		return false
	}
	n.replace(conn, nil)
	return true
}

// replace sets conn and reader. The watches of the previous ones fire. n.mu is held.
func (n *native) replace(conn, reader *client.Client) {
	if old := n.reader; old != nil {
		n.seen = max(n.seen, old.LastZxid())
		// Ends within ConnectTimeout; Close waits.
		n.k.loops.Go(func() { n.leave(old) })
	}
	n.conn, n.reader = conn, reader
	n.changed.Send()
	for key, w := range n.watches {
		n.watches.fire(w, client.Event{Type: EventNotWatching, Path: key.path})
	}
}

// current returns the Client of the current session, or otherwise the reader. The call waits for
// one of them, for longPause at most.
func (n *native) current(ctx context.Context) (*client.Client, error) {
	late := time.After(longPause)
	for {
		n.mu.Lock()
		conn, reader, changed := n.conn, n.reader, n.changed.Next()
		n.mu.Unlock()
		s := n.k.currentSession()
		switch alive := s != nil && !s.ended.Load(); {
		case conn != nil && alive:
			return conn, nil
		case reader != nil && !alive:
			return reader, nil
		}
		select {
		case <-changed:
		case <-late:
			return nil, ErrNoServer
		case <-ctx.Done():
			return nil, newCtxError(ctx, false)
		case <-n.k.closing:
			return nil, ErrClosed
		}
	}
}

// event receives the events of the current conn, in order.
func (n *native) event(e client.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.conn == nil:
	case e.Type != client.EventSession:
		n.fireEvent(e)
	case e.State == client.Connecting:
		n.k.markSuspended()
	case e.State == client.Connected:
		for t := range n.trees {
			if !e.CaughtUp {
				t.f(client.Event{Type: EventMissed, Path: t.root})
			}
		}
		n.k.markConnected()
	}
}

func (n *native) seenZxid() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil {
		return 0
	}
	return int64(n.conn.LastZxid())
}

func (n *native) foundOwn(string) {}

func (n *native) place() (session int64, server string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil {
		return 0, ""
	}
	s := n.conn.Session()
	if s.Server == "" {
		return 0, ""
	}
	return s.ID, s.Server
}

func (n *native) heard(session int64, at time.Duration, proven bool) {
	if s := n.k.currentSession(); proven && s.id == session {
		s.extend(at)
	}
}

func (n *native) leaveServer() {
	n.mu.Lock()
	conn := n.conn
	n.mu.Unlock()
	if conn != nil {
		conn.Reconnect()
	}
}

// close ends the session if there is a connection. Otherwise the session expires. The wait for
// calls ends by itself, as their connection has.
func (n *native) close(*Session, time.Duration) (unanswered int) {
	n.mu.Lock()
	n.ended = true
	conn := n.conn
	n.mu.Unlock()
	if conn != nil {
		n.leave(conn)
	}
	return n.k.calls.wait(time.Hour) + n.k.activeProbes.wait(time.Hour)
}

type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }
