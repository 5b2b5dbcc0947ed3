package subtree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// maxTransaction is how many bytes one multi may have: jute.maxbuffer as it is by default, and some room.
const maxTransaction = 1_000_000

// Copied says how a copy went.
type Copied struct {
	Created    int64 `json:"created"`
	Deleted    int64 `json:"deleted,omitempty"`
	Skipped    int64 `json:"ephemerals_left_out,omitempty"` // ephemeral znodes
	Sequential int64 `json:"sequential,omitempty"`          // znodes with a sequential name
	Atomic     bool  `json:"atomic"`                        // in one transaction
}

// Copy says how to copy or move.
type Copy struct {
	From, To  Side // To.Path must not be there, its parent must
	Recursive bool // else only the znode itself
	Move      bool // delete what was copied. From and To are of the same client
	Seen      func(*Copied)
}

// Run copies, and with Move deletes what was copied. What fits into one multi is one: it happens wholly or not at all, and not if the source
// has changed meanwhile. Else the copy is written in parts, and a move deletes only then, and only what has not changed since
// it began.
//
// Ephemeral znodes are left out of a copy; a subtree with one can't be moved. What is created below the source after Run began is
// left out as well.
func (c *Copy) Run(ctx context.Context) (*Copied, error) {
	done := &Copied{}
	if err := c.check(); err != nil {
		return done, err
	}
	if err := retry(func() error { _, err := c.From.ZK.Sync(ctx, c.From.Path); return err }); err != nil {
		return done, err
	}
	begun := c.From.ZK.LastZxid()
	var first []*Znode // what is there so far; nil once it was too much
	l := &Loader{ZK: c.To.ZK, To: c.To.Path, Seen: func(l *Loader) {
		done.Created = l.Created
		if c.Seen != nil {
			c.Seen(done)
		}
	}}
	size, whole := 0, true
	err := Walk(ctx, c.From.ZK, c.From.Path, c.options(), func(n *Znode) error {
		if n.Depth > 0 && n.Stat.Czxid > begun {
			return nil // else a copy below its source, through another connection where check does not see it, would have no end
		}
		if ok, err := c.wanted(n, done); err != nil || !ok {
			return err
		}
		if whole {
			first = append(first, n)
			if size += c.size(n); size <= maxTransaction && c.From.ZK == c.To.ZK {
				return nil
			}
			whole = false
			if err := c.tooLarge(ctx); err != nil {
				return err
			}
			for _, n := range first {
				if err := l.Add(ctx, n.Record()); err != nil {
					return err
				}
			}
			first = nil
			return nil
		}
		return l.Add(ctx, n.Record())
	})
	if err == nil && whole {
		done.Atomic = true
		return done, c.transaction(ctx, first, done)
	}
	if err == nil {
		err = l.Flush(ctx)
	}
	if err != nil {
		if done.Created > 0 {
			err = fmt.Errorf("%w; %d znodes were written at %s before that", err, done.Created, c.To.Path)
		}
		return done, err
	}
	if c.Move {
		done.Deleted, err = deleteUnchanged(ctx, c.From.ZK, c.From.Path, begun)
	}
	return done, err
}

func (c *Copy) options() Options {
	o := Options{Data: true, ACL: true, NoSystem: true, Kinds: c.From.Kinds}
	if c.Recursive || c.Move {
		o.Below = All
	}
	return o
}

func (c *Copy) check() error {
	if c.From.ZK == c.To.ZK && Within(c.To.Path, c.From.Path) {
		return fmt.Errorf("%s is %s or below it", c.To.Path, c.From.Path)
	}
	if c.Move && c.From.ZK != c.To.ZK {
		return errors.New("only within one ensemble can a subtree be moved")
	}
	return nil
}

// wanted reports whether a znode is to be copied.
func (c *Copy) wanted(n *Znode, done *Copied) (bool, error) {
	switch {
	case n.Denied != nil:
		return false, n.Denied
	case n.Stat.EphemeralOwner != 0 && c.Move:
		return false, fmt.Errorf("%s is ephemeral, it belongs to session %v: it can't be moved", n.Path, n.Stat.EphemeralOwner)
	case n.Stat.EphemeralOwner != 0:
		done.Skipped++
		return false, nil
	case Masked(n.ACL):
		return false, fmt.Errorf("%s: its ACL is not shown in full: it needs a credential that may change it (addauth)", n.Path)
	}
	if Sequential(n.Path) {
		done.Sequential++
	}
	return true, nil
}

// size is about what a znode adds to a transaction.
func (c *Copy) size(n *Znode) int {
	p := pending{path: Join(c.To.Path, n.Rel), data: n.Data, options: client.CreateOptions{ACL: n.ACL}}
	return p.size() + opBytes + len(n.Path)
}

// tooLarge is called before a move writes the first part: an ephemeral found later would leave half a copy.
func (c *Copy) tooLarge(ctx context.Context) error {
	if !c.Move {
		return nil
	}
	return Walk(ctx, c.From.ZK, c.From.Path, Options{Below: All, NoSystem: true}, func(n *Znode) error {
		_, err := c.wanted(n, &Copied{})
		return err
	})
}

// transaction copies or moves all at once.
func (c *Copy) transaction(ctx context.Context, nodes []*Znode, done *Copied) error {
	var ops []client.Op
	for _, n := range nodes {
		if !c.Move {
			ops = append(ops, client.CheckOp(n.Path, n.Stat.Version))
		}
		ops = append(ops, client.CreateOp(Join(c.To.Path, n.Rel), n.Data, client.CreateOptions{
			ACL: n.ACL, Container: n.Container, TTL: time.Duration(n.TTLMs) * time.Millisecond,
		}))
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
			return fmt.Errorf("%s changed meanwhile, nothing was done: %w", e.Path, err)
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

// Within reports whether a path is root or below it.
func Within(path, root string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

// deleteUnchanged deletes a subtree, children first. It stops at a znode that was created or changed after a zxid.
func deleteUnchanged(ctx context.Context, zk *client.Client, root string, since proto.Zxid) (deleted int64, err error) {
	d := deleter{zk: zk}
	var path []*Znode // from the root to the last znode that was visited
	err = Walk(ctx, zk, root, Options{Below: All}, func(n *Znode) error {
		if n.Denied != nil {
			return n.Denied
		}
		if n.Stat.Mzxid > since || n.Stat.Czxid > since {
			return fmt.Errorf("%s changed while it was moved: it and what is above it stays, beside the copy; %d znodes were deleted",
				n.Path, d.deleted)
		}
		for len(path) > n.Depth {
			if err := d.add(ctx, path[len(path)-1]); err != nil {
				return err
			}
			path = path[:len(path)-1]
		}
		path = append(path, n)
		return nil
	})
	for err == nil && len(path) > 0 {
		err = d.add(ctx, path[len(path)-1])
		path = path[:len(path)-1]
	}
	if err == nil {
		err = d.flush(ctx)
	}
	return d.deleted, err
}

// deleter deletes znodes, some hundred at a time.
type deleter struct {
	zk      *client.Client
	batch   []*Znode
	deleted int64
}

func (d *deleter) add(ctx context.Context, n *Znode) error {
	if d.batch = append(d.batch, n); len(d.batch) < batchOps {
		return nil
	}
	return d.flush(ctx)
}

func (d *deleter) flush(ctx context.Context) error {
	ops := make([]client.Op, len(d.batch))
	for i, n := range d.batch {
		ops[i] = client.DeleteOp(n.Path, n.Stat.Version)
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := d.zk.Multi(ctx, ops...)
	if errors.Is(err, proto.ErrNoNode) || errors.Is(err, proto.ErrConnectionLoss) {
		err = d.oneByOne(ctx)
	}
	if err != nil {
		return fmt.Errorf("while the source was deleted, after %d znodes: %w", d.deleted, err)
	}
	d.deleted += int64(len(d.batch))
	d.batch = d.batch[:0]
	return nil
}

// oneByOne deletes the batch when something of it is gone already.
func (d *deleter) oneByOne(ctx context.Context) error {
	for _, n := range d.batch {
		err := retry(func() error { return d.zk.Delete(ctx, n.Path, n.Stat.Version) })
		if err != nil && !errors.Is(err, proto.ErrNoNode) {
			return err
		}
	}
	return nil
}
