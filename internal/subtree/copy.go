package subtree

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// maxTransaction bounds the bytes of a multi: the default of jute.maxbuffer, with a reserve.
const maxTransaction = 1_000_000

// Copied is the outcome of a copy.
type Copied struct {
	Created int64 `json:"created"`
	Deleted int64 `json:"deleted,omitempty"`
	Skipped int64 `json:"ephemerals_left_out,omitempty"` // ephemeral znodes
	Atomic  bool  `json:"atomic"`                        // in one transaction
}

// Copy copies or moves a subtree.
type Copy struct {
	From, To  Side     // To.Path must not exist, its parent must
	Recursive bool     // false: only the znode itself
	Move      bool     // delete the source; From and To must have the same client
	Counters  Counters // moved forward with Recursive or Move
	Seen      func(*Copied)
}

// Run copies the subtree and, with Move, deletes the source.
//
// If all znodes, and the creations that move their sequence counters, fit into one multi, the copy
// is atomic, and fails if the source changes meanwhile.
// Otherwise the copy is written in parts. A move then deletes the source afterwards, except znodes
// that have changed since Run began.
//
// A multi cannot check an ACL: Run compares the versions of the ACLs just before it writes or
// deletes, and after a copy. A move misses an ACL that another client sets in the moment between.
//
// A copy skips ephemeral znodes. A subtree that contains an ephemeral znode cannot be moved. Znodes
// created below the source after Run began are not copied.
func (c *Copy) Run(ctx context.Context) (*Copied, error) {
	done := &Copied{}
	if err := c.check(); err != nil {
		return done, err
	}
	if _, err := c.From.latest(ctx); err != nil {
		return done, err
	}
	r := copying{
		Copy: c, done: done, begun: c.From.ZK.LastZxid(), aclVersions: map[string]int32{}, whole: c.From.ZK == c.To.ZK,
		out: writer{zk: c.To.ZK, repeat: true, counters: &c.Counters},
	}
	r.out.wrote = func() {
		if done.Created = r.out.done[Create]; c.Seen != nil {
			c.Seen(done)
		}
	}
	p := plan{from: Side{Path: c.From.Path}, to: c.To, whole: c.all(), limit: math.MaxInt64}
	p.finish = p.leaveZnode
	p.emit = func(kind StepKind, ch Change, count creation) error { return r.step(ctx, kind, ch, count) }
	err := Walk(ctx, c.From.ZK, c.From.Path, c.options(), func(n *Znode) error {
		if n.Depth > 0 && n.Stat.Czxid > r.begun {
			return nil // otherwise a copy below its source over another connection, which check cannot detect, would never end
		}
		if ok, err := c.wanted(n, done); !ok {
			return err
		}
		if n.Stat.Aversion != 0 {
			r.aclVersions[n.Path] = n.Stat.Aversion
		}
		if r.whole {
			r.nodes = append(r.nodes, n)
		}
		return p.add(Change{Rel: n.Rel, Left: n})
	})
	if err == nil {
		err = p.leave(nil)
	}
	if err == nil {
		err = r.end(ctx)
	}
	if err != nil && done.Created > 0 && !done.Atomic {
		err = fmt.Errorf("%w; before that %d znodes were written at %s", err, done.Created, c.To.Path)
	}
	if err == nil && !c.Move {
		err = r.checkACLs(ctx, "the ACL of %s was set during the copy, which has the earlier one: set it there as well")
		if errors.Is(err, proto.ErrNoNode) {
			err = nil // the source was deleted after the copy
		}
	}
	if err == nil && c.Move && !r.whole {
		err = r.deleteUnchanged(ctx)
	}
	return done, err
}

type copying struct {
	*Copy
	done        *Copied
	out         writer
	begun       proto.Zxid
	aclVersions map[string]int32 // by path, without those that are 0

	whole bool     // the copy so far fits into one transaction, which the fields below describe
	size  int      // in bytes, approximately
	nodes []*Znode // znodes of the source that the transaction checks or deletes
	steps []step
}

// step adds a step to the transaction. A copy too large for one passes its steps to out.
func (c *copying) step(ctx context.Context, kind StepKind, change Change, count creation) error {
	s := newStep(c.To, kind, change, count)
	if s.path == "/" && kind == Create && c.From.ZK != c.To.ZK {
		return nil // the root always exists
	}
	if !c.whole {
		return c.out.do(ctx, s)
	}
	if kind == Create {
		c.size += opBytes + len(change.Left.Path) // the check or deletion
	}
	if s.by <= c.Counters.Limit {
		c.size += s.size()
	}
	if c.steps = append(c.steps, s); c.size <= maxTransaction {
		return nil
	}
	steps := c.steps
	c.whole, c.nodes, c.steps = false, nil, nil
	if err := c.tooLarge(ctx); err != nil {
		return err
	}
	for _, s := range steps {
		if err := c.out.do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) end(ctx context.Context) error {
	if c.done.Atomic = c.whole; !c.whole {
		return c.out.end(ctx)
	}
	err := c.checkACLs(ctx, "the ACL of %s has changed, nothing was done: repeat the command")
	if err == nil {
		err = c.transaction(ctx)
	}
	return err
}

func (c *Copy) options() Options {
	o := Options{Data: true, ACL: true, NoSystem: true, Kinds: c.From.Kinds}
	if c.all() {
		o.Below = All
	}
	return o
}

func (c *Copy) all() bool { return c.Recursive || c.Move }

func (c *Copy) check() error {
	if c.From.ZK == c.To.ZK && Within(c.To.Path, c.From.Path) {
		return fmt.Errorf("%s is %s or below it", c.To.Path, c.From.Path)
	}
	if c.Move && c.From.ZK != c.To.ZK {
		return errors.New("a subtree can be moved only within one ensemble")
	}
	return nil
}

func (c *Copy) wanted(n *Znode, done *Copied) (bool, error) {
	switch {
	case n.Denied != nil:
		return false, n.Denied
	case n.Stat.EphemeralOwner != 0 && c.Move:
		return false, fmt.Errorf("%s is ephemeral, owned by session %v, and cannot be moved", n.Path, n.Stat.EphemeralOwner)
	case n.Stat.EphemeralOwner != 0:
		done.Skipped++
		return false, nil
	case Masked(n.ACL):
		return false, fmt.Errorf("%s: the server does not show its ACL in full: add a credential that may change the ACL (addauth)", n.Path)
	}
	return true, nil
}

// tooLarge prepares writing in parts. It looks for ephemeral znodes first, because a move must not
// find an ephemeral znode after a part of the copy was written.
func (c *Copy) tooLarge(ctx context.Context) error {
	if !c.Move {
		return nil
	}
	return Walk(ctx, c.From.ZK, c.From.Path, Options{Below: All, NoSystem: true}, func(n *Znode) error {
		_, err := c.wanted(n, &Copied{})
		return err
	})
}

// transaction copies or moves everything at once.
func (c *copying) transaction(ctx context.Context) error {
	var ops []client.Op
	for _, n := range c.nodes {
		if !c.Move {
			ops = append(ops, client.CheckOp(n.Path, n.Stat.Version))
		}
	}
	for _, s := range c.steps {
		if s.kind == Create || c.Counters.allow(Counter{Path: s.path, By: s.by}) {
			ops = append(ops, s.ops()...)
		}
	}
	if c.Move {
		for _, n := range slices.Backward(c.nodes) {
			ops = append(ops, client.DeleteOp(n.Path, n.Stat.Version))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := c.To.ZK.Multi(ctx, ops...)
	if e, ok := errors.AsType[*client.Error](err); ok && !e.Unknown && Within(e.Path, c.From.Path) {
		switch e.Code {
		case proto.ErrBadVersion, proto.ErrNotEmpty, proto.ErrNoNode:
			return fmt.Errorf("%s has changed, nothing was done: %w", e.Path, err)
		}
	}
	if err == nil {
		c.done.Created = int64(len(c.nodes))
		if c.Move {
			c.done.Deleted = c.done.Created
		}
	}
	return err
}

// checkACLs returns an error if the ACL of a copied znode was set since Run began. format is the
// text of the error, with %s for the path.
func (c *copying) checkACLs(ctx context.Context, format string) error {
	o := Options{NoSystem: true, Below: c.options().Below}
	return Walk(ctx, c.From.ZK, c.From.Path, o, func(n *Znode) error {
		copied := n.Denied == nil && n.Stat.EphemeralOwner == 0 && n.Stat.Czxid <= c.begun
		if copied && n.Stat.Aversion != c.aclVersions[n.Path] {
			return fmt.Errorf(format, n.Path)
		}
		return nil
	})
}

// Within reports whether path is root or a path below root.
func Within(path, root string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

// deleteUnchanged deletes the source, children first. A znode that was created or changed since Run
// began, or whose ACL was set, ends the deletion.
func (c *copying) deleteUnchanged(ctx context.Context) error {
	w := writer{zk: c.From.ZK, repeat: true}
	failed := func(err error) error {
		if err != nil {
			err = fmt.Errorf("deleting the source, after %d znodes: %w", w.done[Delete], err)
		}
		return err
	}
	deleting := lineage{finish: func(o open) error {
		return failed(w.add(ctx, step{kind: Delete, path: o.doomed.Path, version: o.doomed.Stat.Version}))
	}}
	err := Walk(ctx, c.From.ZK, c.From.Path, Options{Below: All}, func(n *Znode) error {
		if n.Denied != nil {
			return n.Denied
		}
		if n.Stat.Mzxid > c.begun || n.Stat.Czxid > c.begun || n.Stat.Aversion != c.aclVersions[n.Path] {
			return fmt.Errorf("%s changed during the move: it and its parents stay, in addition to the copy; %d znodes were deleted",
				n.Path, w.done[Delete])
		}
		err := deleting.leave(&n.Rel)
		deleting.open = append(deleting.open, open{rel: n.Rel, doomed: n})
		return err
	})
	if err == nil {
		err = deleting.leave(nil)
	}
	if err == nil {
		err = failed(w.flush(ctx))
	}
	c.done.Deleted = w.done[Delete]
	return err
}
