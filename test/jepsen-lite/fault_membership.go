//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/server"
)

// removeAndAdd removes a member, the leader too, and on heal adds it again with an empty data
// directory.
func removeAndAdd(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	if len(n.cluster.Members) < 3 {
		return "nobody: there are too few", nil, nil
	}
	err := n.reconfig(ctx, nil, []string{strconv.Itoa(m.ID)})
	heal := func(ctx context.Context) error {
		// The removed member may have ended by itself.
		err := errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.writeConfig(m), n.cluster.Start(m))
		if err != nil {
			return err
		}
		line := fmt.Sprintf("server.%d=%s", m.ID, n.cluster.ServerLine(m.ID))
		return n.reconfig(ctx, []string{line}, nil)
	}
	return m.String(), heal, err
}

// reconfig asks a serving member until the ensemble has done it. Repeating a request without a
// reply is harmless.
func (n *nemesis) reconfig(ctx context.Context, joining, leaving []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
	defer cancel()
	var last error
	for i := 0; ctx.Err() == nil; i++ {
		m := n.cluster.Members[i%len(n.cluster.Members)]
		if mode := m.Mode(ctx); mode != ModeLeader && mode != ModeFollower {
			last = errors.Join(last, pause(ctx, 50*time.Millisecond))
			continue
		}
		if last = reconfigAt(ctx, m.Client, joining, leaving); last == nil {
			return nil
		}
		n.log.Debug("reconfig again", "error", last)
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return errors.Join(last, err)
		}
	}
	return fmt.Errorf("jepsenlite: reconfig joining %v leaving %v: %w", joining, leaving, last)
}

func reconfigAt(ctx context.Context, address string, joining, leaving []string) error {
	c, err := connect(NewRecorder(), "reconfig", []string{address}, 0, sessionTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	if err := c.await(ctx); err != nil {
		return err
	}
	if err := c.AddAuth("digest", []byte("super:"+server.SuperPassword)); err != nil {
		return err
	}
	const anyVersion = -1
	_, err = c.IncrementalReconfig(joining, leaving, anyVersion)
	if errors.Is(err, zk.ErrConnectionClosed) {
		return fmt.Errorf("outcome unknown: %w", err)
	}
	return err
}
