package subtree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Patch makes a live subtree equal to a wanted state. NewPatch compares, so that a user can see the
// changes first; Apply makes them.
//
// Every write names the version that NewPatch found, so a znode that somebody else changed, created
// or deleted in between ends Apply with an error. A new Patch continues. Parents are created before
// their children and deleted after them.
//
// Ephemeral znodes belong to sessions: those of the wanted state are left out, live znodes stay.
type Patch struct {
	To       Side
	Changes  [numStepKinds][]Change // Left is wanted, Right is live; in the order of a walk
	Counters []Counter              // sequence counters that Apply moves forward
	Behind   []Counter              // sequence counters beyond the limit, which stay behind

	Same       int64
	Ephemerals int64    // ephemeral znodes of the wanted state
	Kept       []string // paths that stay, because a live ephemeral znode is below them

	done    [numStepKinds]int
	batch   []client.Op
	bytes   int
	inBatch [numStepKinds]int
}

// StepKind says how a step of a Patch changes a znode. The kinds are in the order of Apply. ACLs
// come first, so that restored data is never visible to more clients than wanted.
type StepKind int

// The kinds of steps.
const (
	SetACL StepKind = iota
	Create
	SetData
	Delete
	numStepKinds
)

// NewPatch compares the subtree to with the wanted znodes, which are in the order of a walk.
// Counters are moved forward by at most limit creations in total. The error names a znode that
// cannot be compared or restored.
func NewPatch(ctx context.Context, wanted iter.Seq2[*Znode, error], to Side, limit int64) (*Patch, error) {
	p := &Patch{To: to}
	there, err := to.latest(ctx)
	if err != nil {
		return nil, err
	}
	live := to.nodes(ctx, true)
	if !there {
		live = func(func(*Znode, error) bool) {}
	}
	c := comparison{Patch: p, created: map[string]int64{}, busy: map[string]bool{}, empty: map[string]bool{}}
	if err := merge(wanted, live, c.add); err != nil {
		return nil, err
	}
	c.finish(limit)
	return p, nil
}

// comparison is a Patch that NewPatch fills.
type comparison struct {
	*Patch
	counters []Counter        // with Rel as the path, and By as if no child was created
	created  map[string]int64 // by Rel of the parent
	busy     map[string]bool  // the Rel of each znode with a live ephemeral znode below it
	empty    map[string]bool  // the Rel of each container that has no children yet
}

// emptyContainer reports whether the wanted znode is a container that has no children now. The
// server deletes such a container when its counter moves.
func (c *Change) emptyContainer() bool {
	return c.Left.Container && (c.Right == nil || c.Right.Stat.NumChildren == 0)
}

// add takes the next path of both sides.
func (p *comparison) add(c Change) error {
	if c.Left != nil && c.Left.Stat.EphemeralOwner != 0 {
		p.Ephemerals++
		c.Left = nil
	}
	path := Join(p.To.Path, c.Rel)
	switch {
	case c.Right != nil && c.Right.Denied != nil:
		return fmt.Errorf("%s: %w; authenticate as a user who may read and change it", path, c.Right.Denied)
	case c.Right != nil && c.Right.Stat.EphemeralOwner != 0:
		if c.Left != nil {
			return fmt.Errorf("%s is an ephemeral znode of session %v, where a persistent one is to be restored: end that session first",
				path, c.Right.Stat.EphemeralOwner)
		}
		for rel := parent(c.Rel); !p.busy[rel]; rel = parent(rel) {
			p.busy[rel] = true
		}
		return nil
	case c.Left == nil:
		if c.Right != nil {
			p.Changes[Delete] = append(p.Changes[Delete], c)
		}
		return nil
	case c.Right == nil:
		p.Changes[Create] = append(p.Changes[Create], c)
		p.created[parent(c.Rel)]++
	case c.ACL && Masked(c.Right.ACL):
		return fmt.Errorf("%s: the server does not show its ACL in full: authenticate as a user who may change the ACL", path)
	case c.same():
		p.Same++
	default:
		if c.ACL {
			p.Changes[SetACL] = append(p.Changes[SetACL], c)
		}
		if c.Data {
			p.Changes[SetData] = append(p.Changes[SetData], c)
		}
	}
	by := creations(c.Left.Stat)
	if c.Right != nil {
		by -= creations(c.Right.Stat)
		c.Right.Data = nil
	}
	if by > 0 {
		p.counters = append(p.counters, Counter{Path: c.Rel, By: by})
		p.empty[c.Rel] = c.emptyContainer()
	}
	return nil
}

// finish computes what depends on the whole subtree.
func (p *comparison) finish(limit int64) {
	p.Changes[Delete] = slices.DeleteFunc(p.Changes[Delete], func(c Change) bool {
		c.Right.Data, c.Right.ACL = nil, nil
		if p.busy[c.Rel] {
			p.Kept = append(p.Kept, Join(p.To.Path, c.Rel))
		}
		return p.busy[c.Rel]
	})
	for _, c := range p.counters {
		if p.empty[c.Path] && p.created[c.Path] == 0 {
			continue
		}
		c.By -= p.created[c.Path]
		c.Path = Join(p.To.Path, c.Path)
		switch {
		case c.By <= 0:
		case c.By > limit:
			p.Behind = append(p.Behind, c)
		default:
			p.Counters = append(p.Counters, c)
			limit -= c.By
		}
	}
}

// parent returns the Rel of the parent; that of the root is the root.
func parent(rel string) string { return rel[:max(0, strings.LastIndexByte(rel, '/'))] }

// Apply makes the changes. Changes that fit into one transaction are made at once, except ACLs,
// which have no transactions.
func (p *Patch) Apply(ctx context.Context) error {
	err := p.apply(ctx)
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case proto.ErrBadVersion, proto.ErrNoNode, proto.ErrNodeExists, proto.ErrNotEmpty:
		return fmt.Errorf("%s has changed since the comparison: %w", cmp.Or(e.Path, p.To.Path), err)
	case proto.ErrNoAuth:
		return fmt.Errorf("%w; authenticate as a user who may, such as the superuser", err)
	}
	if e.Unknown {
		return fmt.Errorf("the last transaction may have been executed or not: %w", err)
	}
	return err
}

func (p *Patch) apply(ctx context.Context) error {
	for _, c := range p.Changes[SetACL] {
		if _, err := p.To.ZK.SetACL(ctx, c.Right.Path, c.Left.ACL, c.Right.Stat.Aversion); err != nil {
			return err
		}
		p.done[SetACL]++
	}
	for _, c := range p.Changes[Create] {
		n := c.Left
		o := client.CreateOptions{ACL: n.ACL, Container: n.Container, TTL: time.Duration(n.TTLMs) * time.Millisecond}
		z := pending{path: Join(p.To.Path, c.Rel), data: n.Data, options: o}
		if err := p.add(ctx, Create, z.size(), z.op()); err != nil {
			return err
		}
	}
	for _, c := range p.Counters {
		for range c.By {
			if err := p.add(ctx, numStepKinds, int(forwardSize(c.Path, 1)), forward(c.Path, 1)...); err != nil {
				return err
			}
		}
	}
	for _, c := range p.Changes[SetData] {
		z := pending{path: c.Right.Path, data: c.Left.Data}
		if err := p.add(ctx, SetData, z.size(), client.SetOp(z.path, z.data, c.Right.Stat.Version)); err != nil {
			return err
		}
	}
	for _, c := range slices.Backward(p.Changes[Delete]) {
		if err := p.add(ctx, Delete, opBytes+len(c.Right.Path), client.DeleteOp(c.Right.Path, c.Right.Stat.Version)); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// add adds a step to the batch, and writes the batch if it is full.
func (p *Patch) add(ctx context.Context, kind StepKind, size int, ops ...client.Op) error {
	if len(p.batch) > 0 && (len(p.batch)+len(ops) > batchOps || p.bytes+size > batchBytes) {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.batch = append(p.batch, ops...)
	p.bytes += size
	if kind < numStepKinds {
		p.inBatch[kind]++
	}
	return nil
}

func (p *Patch) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	if _, err := p.To.ZK.Multi(ctx, p.batch...); err != nil {
		return err
	}
	for kind, n := range p.inBatch {
		p.done[kind] += n
	}
	p.batch, p.bytes, p.inBatch = p.batch[:0], 0, [numStepKinds]int{}
	return nil
}

// Empty reports whether there is nothing to do.
func (p *Patch) Empty() bool {
	n := len(p.Counters)
	for _, list := range p.Changes {
		n += len(list)
	}
	return n == 0
}

// Done says how many changes of each kind Apply has made.
func (p *Patch) Done() string {
	text := ""
	for kind, name := range [numStepKinds]string{"ACLs set", "created", "data set", "deleted"} {
		if n := len(p.Changes[kind]); n > 0 {
			text += fmt.Sprintf(", %s %d of %d", name, p.done[kind], n)
		}
	}
	return cmp.Or(strings.TrimPrefix(text, ", "), "only counters")
}
