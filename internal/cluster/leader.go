package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/server"
)

const (
	// pollTime is how often to look for what nobody tells of.
	pollTime = 2 * time.Millisecond
	// fewTime is for how long too few members may serve before who waits for a leader is told. Somebody else may be about to start one.
	noMajorityGrace = 2 * time.Second
)

// Leader waits until one member leads and all that are connected with it agree, and returns it. Where too few members are there for
// any to lead, it waits a moment for somebody to change that.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	enough := time.Now()
	for {
		if c.closed.Load() {
			return nil, errClosed
		}
		if m := c.leader(); m != nil {
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
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("cluster: no leader (%s): %w", c.states(), ctx.Err())
		}
	}
}

// awaitWhole gives members that are being let in, as may happen to the last one of a new ensemble, a moment until they vote: until then
// the loss of another member could leave no quorum, which nobody expects of three.
func (c *Cluster) awaitVoters(ctx context.Context) {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	late := time.NewTimer(noMajorityGrace)
	defer late.Stop()
	for len(c.majority()) > 1 {
		if m := c.leader(); m != nil {
			if s := m.Server(); s != nil && s.Status().Whole {
				return
			}
		}
		select {
		case <-poll.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// leader returns who leads, or nil while that is not clear.
func (c *Cluster) leader() *Member {
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
	if i := slices.IndexFunc(majority, func(m *Member) bool { return m.id == id }); i >= 0 {
		return majority[i]
	}
	return nil
}

// atLeader lets the leader's server do what can be done again. If that one can't because it goes meanwhile, or leads no more, the next
// leader does it.
func (c *Cluster) atLeader(ctx context.Context, f func(context.Context, *server.Server) error) error {
	for {
		m, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		s := m.Server()
		if s == nil {
			continue // it went just now, so it does not lead the next time
		}
		err = c.whileServing(ctx, m, s, f)
		if st := s.Status(); err == nil || ctx.Err() != nil || st.Serving && c.serves(m, s) && st.Leader == st.Member {
			return classify(err)
		}
	}
}

// errGone is why who waits for a member is let go.
var errMemberGone = errors.New("cluster: the member is gone")

// whileServing calls f, whose context ends too when the member's life does, or when it is paused or cut off.
func (c *Cluster) whileServing(ctx context.Context, m *Member, s *server.Server, f func(context.Context, *server.Server) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	defer func() {
		cancel(nil)
		<-watching
	}()
	// Ends when f is done; awaited above.
	go func() {
		defer close(watching)
		poll := time.NewTicker(5 * pollTime)
		defer poll.Stop()
		for {
			select {
			case <-poll.C:
				if !c.serves(m, s) {
					cancel(errMemberGone)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return f(ctx, s)
}

// serves reports whether the member has that server still and is one of those that can serve.
func (c *Cluster) serves(m *Member, s *server.Server) bool {
	return m.Server() == s && slices.Contains(c.majority(), m)
}
