package agree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Decision is what became of a transaction.
type Decision string

// The decisions, and the votes.
const (
	Undecided Decision = ""
	Commit    Decision = "commit"
	Abort     Decision = "abort"
)

// Errors of transactions.
var (
	ErrExists   = errors.New("agree: there is a transaction at this path")
	ErrNone     = errors.New("agree: no transaction at this path: it was aborted, or is over, or never began")
	ErrNoSite   = errors.New("agree: not a site of this transaction")
	ErrVoted    = errors.New("agree: the site has voted otherwise")
	ErrBadNames = errors.New("agree: names must be different, not empty, and without a slash")
)

// open are the data of a transaction that is not decided. Without data it is none, but what somebody who came late has left for a moment.
const open = "open"

// The znodes below that of a transaction. Its own data are the decision, made with its first version.
const (
	taskName  = "task"  // what it is about
	sitesName = "sites" // a child for each site, whose data are its vote, made with its first version
	hereName  = "here"  // the line of those who take part at this moment: the first decides
)

// Transaction is something that all sites do, or none. Safe for concurrent use.
//
// One begins it, and tells the sites of its path. Each site joins and votes; who has voted for it must be able to do it, and to undo it, until
// it knows the decision. Whoever is first in line of those who are there, begun by the coordinator, decides when all have voted, or one has voted
// against it or is gone without a vote. So nobody has to wait for one who died.
type Transaction struct {
	client *recipes.Client
	path   string
}

// NewTransaction returns the transaction at path, which is used once.
func NewTransaction(c *recipes.Client, path string) *Transaction {
	return &Transaction{client: c, path: path}
}

// Begin begins it, with what it is about, for those sites, and returns the coordinator's part. A site is a name, which has no slash.
// With recipes.ErrOutcomeUnknown there may be a transaction, and sites that find it may decide it: Decision tells, and who calls Coordinate can abort it.
func (t *Transaction) Begin(ctx context.Context, task []byte, sites ...string) (*Coordinator, error) {
	seen, mark := make(map[string]bool), rand.Text()
	ops := []any{
		&zk.CreateRequest{Path: t.path, Data: []byte(open)},
		&zk.CreateRequest{Path: t.task(), Data: task},
		&zk.CreateRequest{Path: t.sites(), Data: []byte(mark)},
		&zk.CreateRequest{Path: t.here()},
	}
	for _, site := range sites {
		if site == "" || site == "." || site == ".." || strings.Contains(site, "/") || seen[site] {
			return nil, fmt.Errorf("agree: begin %s: %q: %w", t.path, site, ErrBadNames)
		}
		seen[site] = true
		ops = append(ops, &zk.CreateRequest{Path: t.vote(site)})
	}
	err := t.make(ctx, ops, mark)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil, fmt.Errorf("agree: begin %s: %w", t.path, ErrExists)
	case err != nil:
		return nil, err
	}
	p, err := t.join(ctx, "")
	if err != nil {
		return nil, &recipes.Error{Op: "begin", Path: t.path, Err: err, Unknown: true}
	}
	return &Coordinator{p, p.place}, nil
}

// Coordinate takes part without a site: as the coordinator does that began it, or in its place.
func (t *Transaction) Coordinate(ctx context.Context) (*Coordinator, error) {
	p, err := t.join(ctx, "")
	if err != nil {
		return nil, err
	}
	return &Coordinator{p, nil}, nil
}

// Decision returns what was decided so far, without taking part.
func (t *Transaction) Decision(ctx context.Context) (Decision, error) {
	if err := t.client.Sync(ctx, t.path); err != nil {
		return Undecided, err
	}
	d, _, err := t.read(ctx, false)
	return d, err
}

// Forget deletes the transaction. If it was committed, it waits until all sites have called Done. While it is undecided, it fails.
func (t *Transaction) Forget(ctx context.Context) error {
	d, err := t.Decision(ctx)
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case err != nil:
		return err
	case d == Undecided:
		return fmt.Errorf("agree: forget %s: it is not decided", t.path)
	}
	for {
		sites, _, fires, err := t.client.ChildrenW(ctx, t.sites())
		if errors.Is(err, zk.ErrNoNode) || err == nil && (d == Abort || len(sites) == 0) {
			break
		}
		if err != nil {
			return err
		}
		if err := wait(ctx, "forget", t.path, fires); err != nil {
			return err
		}
	}
	return t.remove(ctx)
}

// make creates the znodes of a transaction, and what is above them. If an answer was lost, mark in the data of the sites' znode tells whose is there.
func (t *Transaction) make(ctx context.Context, ops []any, mark string) error {
	for unknown := false; ; {
		_, err := t.client.Multi(ctx, ops...)
		switch {
		case errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil:
			unknown = true
			continue
		case errors.Is(err, zk.ErrNodeExists) && unknown:
			if data, _, readErr := t.client.Get(ctx, t.sites()); readErr != nil {
				return errors.Join(err, readErr)
			} else if string(data) == mark {
				return nil
			}
			return err
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if err := t.client.Ensure(ctx, parentOf(t.path)); err != nil {
			return err
		}
	}
}

// remove deletes all znodes of a transaction. Those who still stand in line find that it is gone.
func (t *Transaction) remove(ctx context.Context) error {
	for _, dir := range []string{t.sites(), t.here()} {
		children, _, err := t.client.Children(ctx, dir)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		for _, name := range children {
			if err := t.client.Delete(ctx, znodepath.Join(dir, name), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
	}
	for _, path := range []string{t.sites(), t.here(), t.task(), t.path} {
		if err := t.client.Delete(ctx, path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// read returns the decision, and with watch a channel that says when to look again.
func (t *Transaction) read(ctx context.Context, watch bool) (d Decision, fires <-chan zk.Event, err error) {
	var data []byte
	if watch {
		data, _, fires, err = t.client.GetW(ctx, t.path)
	} else {
		data, _, err = t.client.Get(ctx, t.path)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && len(data) == 0:
		return Undecided, nil, fmt.Errorf("agree: %s: %w", t.path, ErrNone)
	case err != nil || string(data) == open:
		return Undecided, fires, err
	}
	return Decision(data), fires, nil
}

// decide makes d the decision if there is none, and returns the one that there is then. It does not matter whose it is: so neither does it
// matter if an answer is lost.
func (t *Transaction) decide(ctx context.Context, d Decision) (Decision, error) {
	if _, err := t.client.Set(ctx, t.path, []byte(d), 0); err == nil {
		return d, nil
	} else if !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
		return Undecided, err
	}
	d, _, err := t.read(ctx, false)
	return d, err
}

func (t *Transaction) task() string            { return znodepath.Join(t.path, taskName) }
func (t *Transaction) sites() string           { return znodepath.Join(t.path, sitesName) }
func (t *Transaction) here() string            { return znodepath.Join(t.path, hereName) }
func (t *Transaction) vote(site string) string { return znodepath.Join(t.sites(), site) }

// wait waits for an event, or until ctx ends.
func wait(ctx context.Context, op, path string, fires <-chan zk.Event) error {
	select {
	case <-fires:
		return nil
	case <-ctx.Done():
		return &recipes.Error{Op: op, Path: path, Err: context.Cause(ctx)}
	}
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
