package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Names of the znodes, before the sequence number.
const (
	latchName    = "latch-"   // Curator's LeaderLatch
	selectorName = "lock-"    // Curator's LeaderSelector, which is an InterProcessMutex
	kazooName    = "__lock__" // kazoo's Election, which is a Lock
)

// retryPause is the pause before a candidate joins again after the connection was lost for longer
// than the Client's RetryPolicy allows.
const retryPause = time.Second

// candidate is the common part of Latch and Selector.
type candidate struct {
	client *recipes.Client
	path   string
	name   string
	id     string
}

// ID returns the candidate's id.
func (c *candidate) ID() string { return c.id }

// Leader returns the id of the leader, according to the Client's server. The leadership may have
// ended when Leader returns. If there are no candidates, the error is proto.ErrNoNode.
func (c *candidate) Leader(ctx context.Context) (id string, err error) {
	names, err := contend.ChildNames(ctx, c.client, c.path)
	if err != nil {
		return "", err
	}
	for _, name := range sequence.Sequential(names) {
		data, _, err := c.client.Get(ctx, znodepath.Join(c.path, name))
		if !errors.Is(err, proto.ErrNoNode) { // ErrNoNode: the candidate has left meanwhile
			return string(data), err
		}
	}
	return "", fmt.Errorf("election: no candidates at %s: %w", c.path, proto.ErrNoNode)
}

// Candidates returns the ids of all candidates in order. The first candidate leads.
func (c *candidate) Candidates(ctx context.Context) ([]string, error) {
	all, err := contend.Contenders(ctx, c.client, c.path, sequence.Sequential)
	var ids []string
	for _, x := range all {
		ids = append(ids, string(x.Data))
	}
	return ids, err
}

// isFinal reports whether joining again is useless: the server refuses, or the Client is closed.
func isFinal(err error) bool {
	return errors.Is(err, recipes.ErrClosed) || recipes.Refused(err) && !recipes.IsLost(err)
}

// pauseBeforeRetry waits before the next attempt after err, or until ctx ends. After the loss of a
// session or place there is no pause.
func pauseBeforeRetry(ctx context.Context, err error) {
	if !recipes.IsLost(err) {
		backoff.Sleep(ctx, retryPause)
	}
}
