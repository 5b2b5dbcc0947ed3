package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/server"
)

const (
	// pollTime is the interval between looks at a state that has no notification.
	pollTime = 2 * time.Millisecond
	// noMajorityGrace is how long Leader waits for another goroutine to restore the majority.
	noMajorityGrace = 2 * time.Second
)

// Leader waits until a member leads and all connected members agree on that member. Without a
// majority Leader waits a moment for another goroutine to restore it, and then returns an error.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	enough := time.Now()
	for {
		if c.closed.Load() {
			return nil, errClosed
		}
		if m := c.Leading(); m != nil {
			return m, nil
		}
		switch {
		case c.majority() != nil:
			enough = time.Now()
		case time.Since(enough) < noMajorityGrace:
		case len(c.members) == 1:
			return nil, errorf(ErrState, "cluster: %s", c.states())
		default:
			return nil, errorf(ErrState, "cluster: no majority of the members can serve: %s", c.states())
		}
		if !backoff.Sleep(ctx, pollTime) {
			return nil, fmt.Errorf("cluster: wait for a leader: %s: %w", c.states(), ctx.Err())
		}
	}
}

// awaitVoters waits a moment for members that are being admitted, such as the last member of a new
// ensemble, to become voters. Until then the loss of another member could cost an ensemble of three
// its quorum.
func (c *Cluster) awaitVoters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noMajorityGrace)
	defer cancel()
	for len(c.majority()) > 1 {
		if m := c.Leading(); m != nil {
			if s := m.Server(); s != nil && s.Status().Whole {
				return
			}
		}
		if !backoff.Sleep(ctx, pollTime) {
			return
		}
	}
}

// Leading returns the member that leads, or nil if the members do not agree. It does not wait.
func (c *Cluster) Leading() *Member {
	majority := c.majority()
	if majority == nil {
		return nil
	}
	id := 0
	for _, m := range majority {
		s := m.Server()
		if s == nil {
			return nil
		}
		st := s.Status()
		if !st.Serving || st.Leader == 0 || id != 0 && st.Leader != id {
			return nil
		}
		id = st.Leader
	}
	if i := slices.IndexFunc(majority, func(m *Member) bool { return m.ID() == id }); i >= 0 {
		return majority[i]
	}
	return nil
}

// atLeader calls f with the leader's server. f must be safe to repeat: if the leader ends or loses
// its lead, f runs again on the next leader.
func (c *Cluster) atLeader(ctx context.Context, f func(context.Context, *server.Server) error) error {
	for {
		m, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		s := m.Server()
		if s == nil {
			continue // the server has just ended
		}
		err = c.whileServing(ctx, m, s, f)
		if st := s.Status(); err == nil || ctx.Err() != nil || st.Serving && c.serves(m, s) && st.Leader == st.Member {
			return classify(err)
		}
	}
}

// change is atLeader, and returns when all serving members have applied f's changes.
func (c *Cluster) change(ctx context.Context, f func(context.Context, *server.Server) error) error {
	if err := c.atLeader(ctx, f); err != nil {
		return err
	}
	return c.settle(ctx)
}

// whileServing calls f with a context that also ends when the member ends, pauses or is cut off.
func (c *Cluster) whileServing(ctx context.Context, m *Member, s *server.Server, f func(context.Context, *server.Server) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { // ends when f has returned
		for backoff.Sleep(ctx, 5*pollTime) {
			if !c.serves(m, s) {
				cancel(errors.New("cluster: the member ended, was paused or left the majority"))
			}
		}
	})
	return f(ctx, s)
}

// serves reports whether s is still the member's server and the member belongs to the majority.
func (c *Cluster) serves(m *Member, s *server.Server) bool {
	return m.Server() == s && slices.Contains(c.majority(), m)
}
