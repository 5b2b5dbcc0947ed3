package gozk

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

func (s *script) sessions() []work {
	return []work{
		{"close_removes_ephemerals", s.closeRemovesEphemerals},
		{"reconnect_keeps_session", s.reconnectKeepsSession},
		{"reconnect_keeps_auth", s.reconnectKeepsAuth},
		{"expiry", s.expiry},
		{"idle_session_lives", s.idleSessionLives},
	}
}

func (s *script) closeRemovesEphemerals(ctx context.Context, c *zk.Conn, root string) {
	other := s.connect(ctx)
	for range 3 {
		if _, err := other.Create(root+"/e-", nil, zk.FlagEphemeral|zk.FlagSequence, open()); err != nil {
			other.Close()
			must.Do(err)
			return
		}
	}
	other.Close()
	cases.Eventually(ctx, "no ephemerals", func() bool {
		names, _, err := c.Children(root)
		return err == nil && len(names) == 0
	})
}

func (s *script) reconnectKeepsSession(ctx context.Context, c *zk.Conn, root string) {
	var l line
	other := s.connectBy(ctx, sessionTimeout, &l)
	defer other.Close()
	must.Get(other.Create(root+"/e", nil, zk.FlagEphemeral, open()))
	for range 3 {
		l.reconnect(ctx, other)
	}
	exists, stat := must.Get2(c.Exists(root + "/e"))
	if !exists || stat.EphemeralOwner != other.SessionID() {
		must.Failf("exists %t, %+v, session 0x%x", exists, stat, other.SessionID())
	}
	cases.Expect("expired sessions", l.count(zk.StateExpired), 0)
}

func (s *script) reconnectKeepsAuth(ctx context.Context, _ *zk.Conn, root string) {
	var l line
	joe := s.connectBy(ctx, sessionTimeout, &l)
	defer joe.Close()
	must.Do(joe.AddAuth("digest", []byte("joe:secret")))
	must.Get(joe.Create(root+"/a", nil, 0, zk.AuthACL(zk.PermAll)))
	l.reconnect(ctx, joe)
	// The client resends its credentials some time after the session is back.
	cases.Eventually(ctx, "access", func() bool {
		_, _, err := joe.Get(root + "/a")
		return err == nil
	})
}

// expiry keeps a client away for longer than its timeout.
func (s *script) expiry(ctx context.Context, c *zk.Conn, root string) {
	var l line
	other := s.connectBy(ctx, time.Second, &l)
	defer other.Close()
	session := other.SessionID()
	must.Get(other.Create(root+"/e", nil, zk.FlagEphemeral, open()))
	l.hold(true)
	awaitGone(ctx, c, root+"/e")
	l.cut()
	cases.Eventually(ctx, "expired", func() bool { return l.count(zk.StateExpired) == 1 })
	cases.Eventually(ctx, "a new session", func() bool { return other.State() == zk.StateHasSession })
	if other.SessionID() == session {
		must.Failf("the expired session came back")
	}
}

// idleSessionLives leaves a client idle for three times its timeout: its pings must keep the
// session.
func (s *script) idleSessionLives(ctx context.Context, c *zk.Conn, root string) {
	const timeout = time.Second
	var l line
	other := s.connectBy(ctx, timeout, &l)
	defer other.Close()
	must.Get(other.Create(root+"/e", nil, zk.FlagEphemeral, open()))
	_, _, gone := must.Get3(c.ExistsW(root + "/e"))
	timer := time.NewTimer(3 * timeout)
	defer timer.Stop()
	select {
	case e := <-gone:
		must.Failf("the ephemeral of a living session: %+v", e)
	case <-timer.C:
		cases.Expect("sessions", l.count(zk.StateHasSession), 1)
	case <-ctx.Done():
		must.Do(ctx.Err())
	}
}
