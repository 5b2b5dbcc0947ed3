package subtree

import (
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

// Mirror makes the live subtree To equal to the live subtree From. Unlike Patch it writes while it
// compares, so its memory is bounded like that of a walk.
//
// Ephemeral znodes belong to sessions: those of From are left out, those of To stay. A znode that
// exists in To keeps its kind. Each write names the version that was compared. After an error
// another run continues.
type Mirror struct {
	From, To   Side
	WithoutACL bool  // neither compare nor copy ACLs
	DryRun     bool  // only count
	Creations  int64 // a run creates at most this many znodes to move sequence counters forward
}

// Mirrored is the outcome of a run of a Mirror.
type Mirrored struct {
	Same, Created, Data, ACLs, Deleted int64

	Counters   int64    // sequence counters that were moved forward
	Behind     int64    // sequence counters that stay behind because of Mirror.Creations
	Ephemerals int64    // ephemeral znodes of From
	Kept       int64    // znodes of To that stay, because a live ephemeral znode is below them
	Later      int64    // znodes created during the run, whose kind is not known yet: left to the next run
	Replaced   []string // the first paths whose data or ACL To loses
}

// Lost returns how many znodes of To lose their data, their ACL or their existence.
func (m *Mirrored) Lost() int64 { return m.Data + m.ACLs + m.Deleted }

// Equal reports whether both sides were equal before the run.
func (m *Mirrored) Equal() bool { return m.Lost()+m.Created+m.Counters+m.Later == 0 }

// Run compares the znodes at rels, or the whole subtrees if rels is nil, and writes the
// differences. Only a run over the whole subtrees moves sequence counters.
func (m *Mirror) Run(ctx context.Context, rels []string) (Mirrored, error) {
	p := pass{Mirror: m, whole: rels == nil, limit: m.Creations, out: Patch{To: m.To}}
	var there bool
	for i, s := range []Side{m.From, m.To} {
		var err error
		if there, err = s.latest(ctx); err != nil {
			return p.Mirrored, err
		}
		if !there && i == 0 {
			return p.Mirrored, p.noRoot()
		}
	}
	left, right := m.From.nodes(ctx, !m.WithoutACL), m.To.nodes(ctx, !m.WithoutACL)
	if !there {
		right = func(func(*Znode, error) bool) {}
	}
	if !p.whole {
		rels = slices.Compact(slices.SortedFunc(slices.Values(rels), compareRel))
		left, right = m.From.some(ctx, rels, !m.WithoutACL), m.To.some(ctx, rels, !m.WithoutACL)
	}
	err := merge(left, right, func(c Change) error { return p.add(ctx, c) })
	if err == nil {
		err = p.leave(ctx, nil)
	}
	if err == nil {
		err = p.out.flush(ctx)
	}
	if errors.Is(err, proto.ErrNoAuth) {
		err = fmt.Errorf("%w; authenticate as a user who may, such as the superuser", err)
	}
	return p.Mirrored, err
}

func (m *Mirror) noRoot() error {
	return fmt.Errorf("the source has no %s: nothing is deleted in the target", m.From.Path)
}

// some yields the znodes at some paths that exist. The paths are in the order of a walk.
func (s Side) some(ctx context.Context, rels []string, withACL bool) iter.Seq2[*Znode, error] {
	return func(yield func(*Znode, error) bool) {
		w := &walker{ctx: ctx, zk: s.ZK, options: Options{Data: true, ACL: withACL}}
		for chunk := range slices.Chunk(rels, window) {
			nodes, errs := make([]*Znode, len(chunk)), make([]error, len(chunk))
			_ = Each(len(chunk), func(i int) error {
				nodes[i] = &Znode{Path: Join(s.Path, chunk[i]), Rel: chunk[i], Depth: strings.Count(chunk[i], "/")}
				errs[i] = w.fetch(nodes[i], new([]string))
				return nil
			})
			for i, n := range nodes {
				if errors.Is(errs[i], proto.ErrNoNode) {
					continue
				}
				s.Kinds.note(n)
				if !yield(n, errs[i]) || errs[i] != nil {
					return
				}
			}
		}
	}
}

// pass is a run of a Mirror.
type pass struct {
	*Mirror
	Mirrored
	whole bool
	limit int64  // creations that may still move counters
	open  []open // from the root to the last path, as far as something is to be done after their children
	out   Patch  // batches the writes
}

// open is a znode with work that must follow that of the znodes below it.
type open struct {
	rel     string
	doomed  *Znode // the znode of To, if it is to be deleted
	busy    bool   // a live ephemeral znode is below it
	by      int64  // creations that its sequence counter lacks
	created int64  // children created in this run
	// empty: a container without children, unless some are created. The server would delete the
	// container if its counter moved.
	empty bool
}

// add takes the next path of both sides.
func (p *pass) add(ctx context.Context, c Change) error {
	if err := p.leave(ctx, &c.Rel); err != nil {
		return err
	}
	if c.Left != nil && c.Left.Denied != nil {
		return c.Left.Denied
	}
	if c.Right != nil && c.Right.Denied != nil {
		return c.Right.Denied
	}
	if c.Left != nil && c.Left.Stat.EphemeralOwner != 0 {
		if c.Rel == "" {
			return fmt.Errorf("%s is ephemeral in the source: name another subtree", c.Left.Path)
		}
		p.Ephemerals++
		c.Left = nil
	}
	path := Join(p.To.Path, c.Rel)
	switch {
	case c.Right != nil && c.Right.Stat.EphemeralOwner != 0:
		for i := range p.open {
			p.open[i].busy = true
		}
		if c.Left != nil {
			return fmt.Errorf("%s is an ephemeral znode of session %v in the target, and persistent in the source: end that session first",
				path, c.Right.Stat.EphemeralOwner)
		}
		return nil
	case c.Left == nil && c.Right == nil:
		return nil
	case c.Left == nil && c.Rel == "":
		return p.noRoot()
	case c.Left == nil:
		p.open = append(p.open, open{rel: c.Rel, doomed: c.Right})
		return nil
	case Masked(c.Left.ACL) || c.ACL && Masked(c.Right.ACL):
		return fmt.Errorf("%s: a server does not show its ACL in full: authenticate on both sides as a user who may change the ACL, "+
			"such as the superuser", path)
	}
	if c.Right == nil && p.From.Kinds != nil && c.Left.Stat.Czxid > p.From.KindsAt {
		p.Later++ // as are the znodes below it
		return nil
	}
	by := creations(c.Left.Stat)
	if c.Right != nil {
		by -= creations(c.Right.Stat)
	}
	if err := p.write(ctx, c, path); err != nil {
		return err
	}
	if p.whole {
		p.open = append(p.open, open{rel: c.Rel, by: by, empty: c.emptyContainer()})
	}
	return nil
}

// write creates or changes a znode.
func (p *pass) write(ctx context.Context, c Change, path string) error {
	n := c.Left
	if c.Right == nil {
		p.Created++
		if len(p.open) > 0 {
			p.open[len(p.open)-1].created++
		}
		if p.DryRun {
			return nil
		}
		o := client.CreateOptions{ACL: n.ACL, Container: n.Container, TTL: time.Duration(n.TTLMs) * time.Millisecond}
		z := pending{path: path, data: n.Data, options: o}
		return p.out.add(ctx, Create, z.size(), z.op())
	}
	if c.Data || c.ACL {
		p.lose(path)
	} else {
		p.Same++
	}
	if c.ACL {
		p.ACLs++
	}
	if c.Data {
		p.Data++
	}
	if c.ACL && !p.DryRun { // before the data, so that new data is never visible to more clients than wanted
		if _, err := p.To.ZK.SetACL(ctx, path, n.ACL, c.Right.Stat.Aversion); err != nil {
			return err
		}
	}
	if !c.Data || p.DryRun {
		return nil
	}
	z := pending{path: path, data: n.Data}
	return p.out.add(ctx, SetData, z.size(), client.SetOp(path, n.Data, c.Right.Stat.Version))
}

// leave does the work of the open znodes that rel is not below; nil leaves all.
func (p *pass) leave(ctx context.Context, rel *string) error {
	for len(p.open) > 0 {
		o := p.open[len(p.open)-1]
		if rel != nil && strings.HasPrefix(*rel, o.rel+"/") {
			return nil
		}
		p.open = p.open[:len(p.open)-1]
		if err := p.finish(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// finish deletes a znode that From lacks, or moves a counter forward.
func (p *pass) finish(ctx context.Context, o open) error {
	path := Join(p.To.Path, o.rel)
	by := o.by - o.created
	switch {
	case o.doomed != nil && o.busy:
		p.Kept++
	case o.doomed != nil:
		p.Deleted++
		p.lose(path)
		if !p.DryRun {
			return p.out.add(ctx, Delete, opBytes+len(path), client.DeleteOp(path, o.doomed.Stat.Version))
		}
	case by <= 0 || o.empty && o.created == 0:
	case by > p.limit:
		p.Behind++
	default:
		p.Counters++
		p.limit -= by
		if p.DryRun {
			return nil
		}
		for range by {
			if err := p.out.add(ctx, numStepKinds, int(forwardSize(path, 1)), forward(path, 1)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxReplaced bounds Mirrored.Replaced.
const maxReplaced = 10

func (p *pass) lose(path string) {
	if len(p.Replaced) < maxReplaced {
		p.Replaced = append(p.Replaced, path)
	}
}
