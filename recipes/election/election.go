package election

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

var (
	// ErrNoLeader is returned when nobody stands.
	ErrNoLeader = errors.New("election: nobody leads")
	// ErrClosed is returned when a Latch is closed.
	ErrClosed = errors.New("election: latch is closed")
)

// Names of the znodes, before the number.
const (
	latchName    = "latch-"   // Curator's LeaderLatch
	selectorName = "lock-"    // Curator's LeaderSelector, which is an InterProcessMutex
	kazooName    = "__lock__" // kazoo's Election, which is a Lock
)

// standPause is between two tries to stand, when the connection was lost for longer than the Client's RetryPolicy wanted to wait.
const retryPause = time.Second

// candidate is what a Latch and a Selector have in common.
type candidate struct {
	client *recipes.Client
	path   string
	name   string
	id     string
}

// ID returns what the candidate is called.
func (c *candidate) ID() string { return c.id }

// Leader returns the id of who leads, as the server knows it: it may lead no more when this returns. If nobody stands, the error is ErrNoLeader.
func (c *candidate) Leader(ctx context.Context) (id string, err error) {
	names, _, err := c.client.Children(ctx, c.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	for _, name := range recipes.Sequential(names) {
		data, _, err := c.client.Get(ctx, znodepath.Join(c.path, name))
		if !errors.Is(err, zk.ErrNoNode) { // who has gone meanwhile leads no more
			return string(data), err
		}
	}
	return "", ErrNoLeader
}

// Candidates returns the ids of all who stand, in the order in which they will lead; the first does.
func (c *candidate) Candidates(ctx context.Context) ([]string, error) {
	all, err := contend.Contenders(ctx, c.client, c.path, nil)
	var ids []string
	for _, x := range all {
		ids = append(ids, string(x.Data))
	}
	return ids, err
}

// Explain returns who leads at path, and who waits for that, in order. Contender.Data is the id.
func Explain(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, path, nil)
	if err != nil || len(all) == 0 {
		return recipes.Contention{}, err
	}
	return recipes.Contention{Holders: all[:1], Waiters: all[1:]}, nil
}

// final reports whether standing again makes no sense: the server refuses, or the Client is closed.
func isFinal(err error) bool {
	var e *recipes.Error
	return errors.Is(err, recipes.ErrClosed) || errors.As(err, &e) && e.Refused() && !isLost(err)
}

// isLost reports whether a place, or leadership, is gone, though its owner wanted it.
func isLost(err error) bool {
	return errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrNotHeld)
}

// pause waits before the next try after err, or until ctx ends. After a loss there is nothing to wait for.
func pauseBeforeRetry(ctx context.Context, err error) {
	if isLost(err) {
		return
	}
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
