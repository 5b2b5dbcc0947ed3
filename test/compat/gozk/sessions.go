package gozk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

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

func (s *script) closeRemovesEphemerals(ctx context.Context, c *zk.Conn, root string) error {
	other, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		if _, err := other.Create(root+"/e-", nil, zk.FlagEphemeral|zk.FlagSequence, open()); err != nil {
			other.Close()
			return err
		}
	}
	other.Close()
	return cases.Eventually(ctx, "no ephemerals", func() bool {
		names, _, err := c.Children(root)
		return err == nil && len(names) == 0
	})
}

func (s *script) reconnectKeepsSession(ctx context.Context, c *zk.Conn, root string) error {
	p, err := newProxy(s.addr)
	if err != nil {
		return err
	}
	defer p.close()
	var states recorder
	other, err := connectTo(ctx, p.addr(), sessionTimeout, &states)
	if err != nil {
		return err
	}
	defer other.Close()
	if _, err := other.Create(root+"/e", nil, zk.FlagEphemeral, open()); err != nil {
		return err
	}
	for range 3 {
		if err := s.reconnect(ctx, p, other, &states); err != nil {
			return err
		}
	}
	exists, stat, err := c.Exists(root + "/e")
	if err != nil {
		return err
	}
	if !exists || stat.EphemeralOwner != other.SessionID() {
		return fmt.Errorf("exists %t, %+v, session 0x%x", exists, stat, other.SessionID())
	}
	return cases.Expect("expired sessions", states.count(zk.StateExpired), 0)
}

func (s *script) reconnectKeepsAuth(ctx context.Context, _ *zk.Conn, root string) error {
	p, err := newProxy(s.addr)
	if err != nil {
		return err
	}
	defer p.close()
	var states recorder
	joe, err := connectTo(ctx, p.addr(), sessionTimeout, &states)
	if err != nil {
		return err
	}
	defer joe.Close()
	if err := joe.AddAuth("digest", []byte("joe:secret")); err != nil {
		return err
	}
	if _, err := joe.Create(root+"/a", nil, 0, zk.AuthACL(zk.PermAll)); err != nil {
		return err
	}
	if err := s.reconnect(ctx, p, joe, &states); err != nil {
		return err
	}
	// The client resends its credentials some time after the session is back.
	return cases.Eventually(ctx, "access", func() bool {
		_, _, err := joe.Get(root + "/a")
		return err == nil
	})
}

// expiry keeps a client away for longer than its timeout.
func (s *script) expiry(ctx context.Context, c *zk.Conn, root string) error {
	p, err := newProxy(s.addr)
	if err != nil {
		return err
	}
	defer p.close()
	var states recorder
	other, err := connectTo(ctx, p.addr(), time.Second, &states)
	if err != nil {
		return err
	}
	defer other.Close()
	session := other.SessionID()
	if _, err := other.Create(root+"/e", nil, zk.FlagEphemeral, open()); err != nil {
		return err
	}
	p.hold()
	p.cut()
	if err := awaitGone(ctx, c, root+"/e"); err != nil {
		return err
	}
	p.release()
	if err := cases.Eventually(ctx, "expired", func() bool { return states.count(zk.StateExpired) == 1 }); err != nil {
		return err
	}
	if err := cases.Eventually(ctx, "a new session", func() bool { return other.State() == zk.StateHasSession }); err != nil {
		return err
	}
	if other.SessionID() == session {
		return errors.New("the expired session came back")
	}
	return nil
}

// idleSessionLives leaves a client idle for three times its timeout: its pings must keep the
// session.
func (s *script) idleSessionLives(ctx context.Context, c *zk.Conn, root string) error {
	const timeout = time.Second
	var states recorder
	other, err := connectTo(ctx, s.addr, timeout, &states)
	if err != nil {
		return err
	}
	defer other.Close()
	if _, err := other.Create(root+"/e", nil, zk.FlagEphemeral, open()); err != nil {
		return err
	}
	_, _, gone, err := c.ExistsW(root + "/e")
	if err != nil {
		return err
	}
	timer := time.NewTimer(3 * timeout)
	defer timer.Stop()
	select {
	case e := <-gone:
		return fmt.Errorf("the ephemeral of a living session: %+v", e)
	case <-timer.C:
		return cases.Expect("sessions", states.count(zk.StateHasSession), 1)
	case <-ctx.Done():
		return ctx.Err()
	}
}
