package agree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Decision is the outcome of a transaction, or a vote.
type Decision string

// The decisions.
const (
	Undecided Decision = ""
	Commit    Decision = "commit"
	Abort     Decision = "abort"
)

// open is the data of an undecided transaction. A znode without data is no transaction, but a
// parent that a late participant has created and that the server will delete.
const open = "open"

// The znodes below that of a transaction. The transaction's own data become the decision, as their
// version 1.
const (
	taskName  = "task"  // the task
	sitesName = "sites" // has a child for each site, whose data become its vote, as their version 1
	lineName  = "here"  // the line of the participants that are present: the first decides
)

// Transaction is a change that all sites make, or none. If there is no transaction at its path,
// because it was aborted, is over, or has not begun, the methods fail with zk.ErrNoNode. Safe for
// concurrent use.
//
// A coordinator begins the transaction and tells its path to the sites. Each site joins and votes.
// A site that has voted for the commit must be able to make the change, and to undo it, until the
// decision is known. The participants that are present stand in a line, with the coordinator first.
// The first in line decides when all sites have voted, or any site has voted against the commit or
// is gone without a vote. So nobody waits for a dead participant.
type Transaction struct {
	client *recipes.Client
	path   string
}

// NewTransaction returns the transaction at path. A path must be used once only.
func NewTransaction(c *recipes.Client, path string) *Transaction {
	return &Transaction{client: c, path: path}
}

// Begin begins the transaction with a task for the given sites and returns its coordinator. The
// name of a site must be the valid name of a znode. If there is a transaction, the error is
// zk.ErrNodeExists.
//
// After recipes.ErrOutcomeUnknown there may be a transaction, which the sites may decide: Explain
// reads the decision, and a coordinator of Join can abort the transaction.
func (t *Transaction) Begin(ctx context.Context, task []byte, sites ...string) (*Participant, error) {
	seen, mark := make(map[string]bool), rand.Text()
	ops := []any{
		&zk.CreateRequest{Path: t.path, Data: []byte(open)},
		&zk.CreateRequest{Path: t.taskPath(), Data: task},
		&zk.CreateRequest{Path: t.sitesPath(), Data: []byte(mark)},
		&zk.CreateRequest{Path: t.linePath()},
	}
	for _, site := range sites {
		if !znodepath.ValidName(site) || seen[site] {
			return nil, fmt.Errorf("agree: begin %s: site %q: names must be different, not empty, and without a slash: %w", t.path, site, recipes.ErrArgument)
		}
		seen[site] = true
		ops = append(ops, &zk.CreateRequest{Path: t.votePath(site)})
	}
	if err := t.create(ctx, ops, mark); err != nil {
		return nil, err
	}
	p, err := t.join(ctx, "")
	if err != nil {
		return nil, &recipes.Error{Op: "begin", Path: t.path, Err: err, Unknown: true}
	}
	p.initial = p.place
	return p, nil
}

// Forget deletes the transaction. After a commit Forget first waits until all sites have called
// Done. If the transaction is undecided, Forget fails.
func (t *Transaction) Forget(ctx context.Context) error {
	if err := t.client.Sync(ctx, t.path); err != nil {
		return err
	}
	d, _, err := t.readDecision(ctx, false)
	switch {
	case err != nil:
		return contend.IgnoreMissing(err)
	case d == Undecided:
		return fmt.Errorf("agree: forget %s: the transaction is undecided", t.path)
	}
	for {
		sites, _, fires, err := t.client.ChildrenW(ctx, t.sitesPath())
		if errors.Is(err, zk.ErrNoNode) || err == nil && (d == Abort || len(sites) == 0) {
			break
		}
		if err != nil {
			return err
		}
		if err := contend.Await(ctx, "forget", t.path, fires); err != nil {
			return err
		}
	}
	return t.delete(ctx)
}

// create creates the znodes of a transaction and the missing parents. After a lost answer, mark in
// the data of the sites' parent tells whether this call created the existing transaction.
func (t *Transaction) create(ctx context.Context, ops []any, mark string) error {
	for unknown := false; ; {
		_, err := t.client.Multi(ctx, ops...)
		switch {
		case errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil:
			unknown = true
			continue
		case errors.Is(err, zk.ErrNodeExists) && unknown:
			if data, _, readErr := t.client.Get(ctx, t.sitesPath()); readErr != nil {
				return errors.Join(err, readErr)
			} else if string(data) == mark {
				return nil
			}
			return err
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if err := t.client.Ensure(ctx, znodepath.Parent(t.path)); err != nil {
			return err
		}
	}
}

// delete deletes all znodes of the transaction, including the places of participants, which then
// find no transaction.
func (t *Transaction) delete(ctx context.Context) error {
	var paths []string
	for _, dir := range []string{t.sitesPath(), t.linePath()} {
		children, err := contend.ChildNames(ctx, t.client, dir)
		if err != nil {
			return err
		}
		for _, name := range children {
			paths = append(paths, znodepath.Join(dir, name))
		}
	}
	for _, path := range append(paths, t.sitesPath(), t.linePath(), t.taskPath(), t.path) {
		if err := contend.IgnoreMissing(t.client.Idempotent().Delete(ctx, path, -1)); err != nil {
			return err
		}
	}
	return nil
}

// readDecision returns the decision, and with watch a channel that says when to read again.
func (t *Transaction) readDecision(ctx context.Context, watch bool) (Decision, <-chan zk.Event, error) {
	data, fires, err := getMaybeWatch(ctx, t.client, t.path, watch)
	switch {
	case err == nil && len(data) == 0:
		return Undecided, nil, t.explainMissing(proto.ErrNoNode)
	case err != nil || string(data) == open:
		return Undecided, fires, t.explainMissing(err)
	}
	return Decision(data), fires, nil
}

// decide decides for d unless there is a decision, and returns the decision. The author of a
// decision makes no difference, so a lost answer does no harm.
func (t *Transaction) decide(ctx context.Context, d Decision) (Decision, error) {
	if _, err := t.client.Idempotent().Set(ctx, t.path, []byte(d), 0); err == nil {
		return d, nil
	} else if !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
		return Undecided, err
	}
	d, _, err := t.readDecision(ctx, false)
	return d, err
}

// explainMissing says what zk.ErrNoNode means.
func (t *Transaction) explainMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("agree: no transaction at %s: it was aborted, is over, or has not begun: %w", t.path, err)
	}
	return err
}

func (t *Transaction) taskPath() string            { return znodepath.Join(t.path, taskName) }
func (t *Transaction) sitesPath() string           { return znodepath.Join(t.path, sitesName) }
func (t *Transaction) linePath() string            { return znodepath.Join(t.path, lineName) }
func (t *Transaction) votePath(site string) string { return znodepath.Join(t.sitesPath(), site) }

// getMaybeWatch returns the data of a znode, and with watch a channel that says when they may have
// changed.
func getMaybeWatch(ctx context.Context, c *recipes.Client, path string, watch bool) (data []byte, fires <-chan zk.Event, err error) {
	if watch {
		data, _, fires, err = c.GetW(ctx, path)
	} else {
		data, _, err = c.Get(ctx, path)
	}
	return data, fires, err
}
