package subtree

import (
	"context"
	"errors"
	"fmt"
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
	begun := c.From.ZK.LastZxid()
	var waiting []*Znode // until they exceed one transaction
	l := &Loader{ZK: c.To.ZK, To: c.To.Path, Counters: c.Counters, Seen: func(l *Loader) {
		done.Created = l.Created
		if c.Seen != nil {
			c.Seen(done)
		}
	}}
	var size int64
	aclVersions := map[string]int32{} // by path, without those that are 0
	whole := c.From.ZK == c.To.ZK
	err := Walk(ctx, c.From.ZK, c.From.Path, c.options(), func(n *Znode) error {
		if n.Depth > 0 && n.Stat.Czxid > begun {
			return nil // otherwise a copy below its source over another connection, which check cannot detect, would never end
		}
		ok, err := c.wanted(n, done)
		if err != nil {
			return err
		}
		if !c.all() {
			n.Stat.Cversion, n.Stat.NumChildren = 0, 0 // the counter belongs to the children
		}
		if n.Stat.Aversion != 0 {
			aclVersions[n.Path] = n.Stat.Aversion
		}
		if ok {
			waiting = append(waiting, n)
		}
		if size += c.size(n, ok); whole && size > maxTransaction {
			whole = false
			if err := c.tooLarge(ctx); err != nil {
				return err
			}
		}
		for !whole && len(waiting) > 0 {
			if err := l.Add(ctx, waiting[0].Record()); err != nil {
				return err
			}
			waiting = waiting[1:]
		}
		return nil
	})
	if err == nil && whole {
		done.Atomic = true
		err := c.checkACLs(ctx, begun, aclVersions, "the ACL of %s has changed, nothing was done: repeat the command")
		if err == nil {
			err = c.transaction(ctx, waiting, done)
		}
		if err == nil && !c.Move {
			err = c.checkACLs(ctx, begun, aclVersions, copiedEarlierACL)
		}
		return done, err
	}
	if err == nil {
		err = l.Finish(ctx)
	}
	c.Counters = l.Counters
	if err != nil {
		if done.Created > 0 {
			err = fmt.Errorf("%w; before that %d znodes were written at %s", err, done.Created, c.To.Path)
		}
		return done, err
	}
	if !c.Move {
		return done, c.checkACLs(ctx, begun, aclVersions, copiedEarlierACL)
	}
	done.Deleted, err = deleteUnchanged(ctx, c.From, begun, aclVersions)
	return done, err
}

const copiedEarlierACL = "the ACL of %s was set during the copy, which has the earlier one: set it there as well"

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

// size returns the approximate number of bytes that a znode adds to a transaction. Each child that
// is not copied costs a creation that moves the counter of its parent.
func (c *Copy) size(n *Znode, copied bool) int64 {
	path := Join(c.To.Path, n.Rel)
	if !copied {
		return forwardSize(path, 1)
	}
	s := step{kind: Create, path: path, data: n.Data, options: n.options()}
	size := int64(s.size() + opBytes + len(n.Path))
	if gone := creations(n.Stat) - int64(n.Stat.NumChildren); gone > 0 && gone <= c.Counters.Limit {
		size += forwardSize(path, gone)
	}
	return size
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
func (c *Copy) transaction(ctx context.Context, nodes []*Znode, done *Copied) error {
	var ops []client.Op
	created := map[string]int64{} // children, by Rel of the parent
	for _, n := range nodes {
		if n.Depth > 0 {
			created[parent(n.Rel)]++
		}
		if !c.Move {
			ops = append(ops, client.CheckOp(n.Path, n.Stat.Version))
		}
		ops = append(ops, client.CreateOp(Join(c.To.Path, n.Rel), n.Data, n.options()))
	}
	for _, n := range nodes {
		behind := Counter{Path: Join(c.To.Path, n.Rel), By: creations(n.Stat) - created[n.Rel]}
		if empties := n.Container && created[n.Rel] == 0; behind.By > 0 && !empties && c.Counters.allow(behind) {
			ops = append(ops, forward(behind.Path, behind.By)...)
		}
	}
	if c.Move {
		for _, n := range slices.Backward(nodes) {
			ops = append(ops, client.DeleteOp(n.Path, n.Stat.Version))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := c.To.ZK.Multi(ctx, ops...)
	var e *client.Error
	if errors.As(err, &e) && !e.Unknown && Within(e.Path, c.From.Path) {
		switch e.Code {
		case proto.ErrBadVersion, proto.ErrNotEmpty, proto.ErrNoNode:
			return fmt.Errorf("%s has changed, nothing was done: %w", e.Path, err)
		}
	}
	if err == nil {
		done.Created = int64(len(nodes))
		if c.Move {
			done.Deleted = done.Created
		}
	}
	return err
}

// checkACLs fails, with a format for the path, if an ACL was set since Run began.
func (c *Copy) checkACLs(ctx context.Context, begun proto.Zxid, versions map[string]int32, format string) error {
	o := Options{NoSystem: true, Below: c.options().Below}
	return Walk(ctx, c.From.ZK, c.From.Path, o, func(n *Znode) error {
		if n.Denied == nil && n.Stat.Czxid <= begun && n.Stat.Aversion != versions[n.Path] {
			return fmt.Errorf(format, n.Path)
		}
		return nil
	})
}

// Within reports whether path is root or a path below root.
func Within(path, root string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

// deleteUnchanged deletes a subtree, children first. A znode that was created or changed after the
// zxid since, or whose ACL has another version than in aclVersions, ends the deletion.
func deleteUnchanged(ctx context.Context, from Side, since proto.Zxid, aclVersions map[string]int32) (deleted int64, err error) {
	w := writer{zk: from.ZK, repeat: true}
	failed := func(err error) error {
		if err != nil {
			err = fmt.Errorf("deleting the source, after %d znodes: %w", w.done[Delete], err)
		}
		return err
	}
	deleting := lineage{finish: func(o open) error {
		return failed(w.add(ctx, step{kind: Delete, path: o.doomed.Path, version: o.doomed.Stat.Version}))
	}}
	err = Walk(ctx, from.ZK, from.Path, Options{Below: All}, func(n *Znode) error {
		if n.Denied != nil {
			return n.Denied
		}
		if n.Stat.Mzxid > since || n.Stat.Czxid > since || n.Stat.Aversion != aclVersions[n.Path] {
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
	return w.done[Delete], err
}
