package subtree

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// plan emits the steps that make the live subtree "to" equal to the wanted subtree "from". The
// differences arrive in the order of a walk. The creation of a znode precedes all steps of its
// descendants; its deletion, or the move of its sequence counter, follows them. So the memory of a
// plan is bounded by the depth of the subtrees.
//
// Ephemeral znodes belong to sessions: those of "from" are left out. Those of "to" stay, and so do
// their ancestors. A live znode of another kind is created again, if it has no children and the
// kinds of both sides are known.
type plan struct {
	from, to Side
	whole    bool  // counters are moved
	limit    int64 // creations that may still move counters
	emit     func(kind StepKind, c Change, count creation) error
	renewed  map[string]proto.Zxid // see Mirror
	Mirrored
	lineage
}

// creation counts the creations that move a sequence counter: by is how many are missing, wanted
// how many the wanted znode has seen.
type creation struct{ by, wanted int64 }

// run plans all steps between the nodes of the two sides.
func (p *plan) run(wanted, live iter.Seq2[*Znode, error]) error {
	p.finish = p.leaveZnode
	if err := merge(wanted, live, p.add); err != nil {
		return err
	}
	return p.leave(nil)
}

// add takes the next path of both sides.
func (p *plan) add(c Change) error {
	if err := p.leave(&c.Rel); err != nil {
		return err
	}
	switch {
	case c.Left != nil && c.Left.Denied != nil:
		return p.from.failed(c.Left.Denied)
	case c.Right != nil && c.Right.Denied != nil:
		return p.to.failed(c.Right.Denied)
	}
	if c.Left != nil && c.Left.Stat.EphemeralOwner != 0 {
		if c.Rel == "" {
			return fmt.Errorf("%s is ephemeral in the source: name another subtree", c.Left.Path)
		}
		p.Ephemerals++
		c.Left = nil
	}
	path := Join(p.to.Path, c.Rel)
	switch {
	case c.Right != nil && c.Right.Stat.EphemeralOwner != 0:
		for i := range p.open {
			p.open[i].busy = true
		}
		if c.Left != nil {
			return fmt.Errorf("%s is an ephemeral znode of session %v, where a persistent one is wanted: "+
				"end that session first", path, c.Right.Stat.EphemeralOwner)
		}
		return nil
	case c.Left == nil && c.Right == nil:
		return nil
	case c.Left == nil && c.Rel == "":
		return p.from.noRoot()
	case c.Left == nil:
		p.open = append(p.open, open{rel: c.Rel, doomed: c.Right})
		return nil
	case p.from.ZK != nil && Masked(c.Left.ACL) || c.ACL && Masked(c.Right.ACL):
		return fmt.Errorf("%s: a server does not show its ACL in full: authenticate to it as a user who may change "+
			"the ACL, such as the superuser", path)
	case c.Right == nil && p.from.Kinds != nil && c.Left.Stat.Czxid > p.from.KindsAt:
		p.Later++ // as are the znodes below it
		return nil
	}
	if p.recreates(&c) {
		if err := p.emit(Delete, c, creation{}); err != nil {
			return err
		}
		c.Right = nil
	}
	if err := p.change(c, path); err != nil || !p.whole {
		return err
	}
	o := open{rel: c.Rel, by: creations(c.Left.Stat), empty: c.Left.Container}
	if c.Right != nil {
		o.by, o.empty = o.by-creations(c.Right.Stat), o.empty && c.Right.Stat.NumChildren == 0
	}
	p.open = append(p.open, o)
	return nil
}

func (p *plan) change(c Change, path string) error {
	renew := p.renews(c)
	if c.Right == nil {
		p.Created++
		p.child(c.Rel)
		return p.emit(Create, c, creation{})
	}
	if c.Data || c.ACL {
		p.lose(path)
	} else {
		p.Same++
	}
	if c.ACL { // before the data, so that new data is never visible to more clients than wanted
		p.ACLs++
		if err := p.emit(SetACL, c, creation{}); err != nil {
			return err
		}
	}
	if c.Data {
		p.Data++
		return p.emit(SetData, c, creation{})
	}
	if renew {
		p.Renewed++
		return p.emit(SetData, c, creation{})
	}
	return nil
}

// recreates reports whether the live znode is of another kind and must be created again. With
// children it keeps its kind: no server deletes it then.
func (p *plan) recreates(c *Change) bool {
	return p.from.Kinds != nil && p.to.Kinds != nil && c.Right != nil && c.Right.Stat.NumChildren == 0 &&
		c.Left.Stat.Czxid <= p.from.KindsAt && c.Right.Stat.Czxid <= p.to.KindsAt &&
		(c.Left.Container != c.Right.Container || c.Left.TTLMs != c.Right.TTLMs)
}

// renews notes the last write of a TTL znode of "from", and reports whether the live znode must be
// written even if it has the same data. A TTL begins again with each write, and while there are
// children: the live znode has none if they are ephemeral.
func (p *plan) renews(c Change) bool {
	if p.renewed == nil || c.Left.TTLMs == 0 {
		return false
	}
	last := p.renewed[c.Left.Path]
	p.renewed[c.Left.Path] = c.Left.Stat.Mzxid
	return c.Right != nil && (last != c.Left.Stat.Mzxid || c.Left.Stat.NumChildren > 0 && c.Right.Stat.NumChildren == 0)
}

// leaveZnode plans the deletion of an unwanted znode, or the move of a sequence counter.
func (p *plan) leaveZnode(o open) error {
	c := Change{Rel: o.rel, Right: o.doomed}
	by := o.lacks()
	switch {
	case o.doomed != nil && o.busy:
		p.Kept++
		return p.emit(keep, c, creation{})
	case o.doomed != nil:
		p.Deleted++
		p.lose(Join(p.to.Path, o.rel))
		return p.emit(Delete, c, creation{})
	case by <= 0:
		return nil
	case by > p.limit:
		p.Behind++
		return p.emit(leaveBehind, c, creation{by, o.by})
	}
	p.Counters++
	p.limit -= by
	return p.emit(moveCounter, c, creation{by, o.by})
}

const maxReplaced = 10

func (p *plan) lose(path string) {
	if len(p.Replaced) < maxReplaced {
		p.Replaced = append(p.Replaced, path)
	}
}

// lineage holds those znodes from the root to the last path of a walk whose work must follow that
// of their descendants.
type lineage struct {
	open   []open
	finish func(open) error // does that work
}

// open is a znode of a lineage.
type open struct {
	rel     string
	doomed  *Znode // the live znode, if it is to be deleted
	busy    bool   // a live ephemeral znode is below it
	by      int64  // creations that its sequence counter lacks
	created int64  // children that are created
	// empty: a container without children, unless some are created. The server would delete the
	// container if its counter moved.
	empty bool
}

// lacks returns how many creations the sequence counter lacks; 0 or less: the counter stays.
func (o *open) lacks() int64 {
	if o.empty && o.created == 0 {
		return 0
	}
	return o.by - o.created
}

// leave finishes the znodes that are not ancestors of rel, or all znodes if rel is nil.
func (l *lineage) leave(rel *string) error {
	for n := len(l.open) - 1; n >= 0; n-- {
		o := l.open[n]
		if rel != nil && strings.HasPrefix(*rel, o.rel+"/") {
			return nil
		}
		l.open = l.open[:n]
		if err := l.finish(o); err != nil {
			return err
		}
	}
	return nil
}

// child counts the creation of a znode for its parent.
func (l *lineage) child(rel string) {
	if n := len(l.open); n > 0 && l.open[n-1].rel == rel[:max(0, strings.LastIndexByte(rel, '/'))] {
		l.open[n-1].created++
	}
}

// prepare makes the server show every committed change, and returns the znodes of the side. there
// is false if the root does not exist; then there are no znodes.
func (s Side) prepare(ctx context.Context, withACL bool) (znodes iter.Seq2[*Znode, error], there bool, err error) {
	there, err = s.latest(ctx)
	if !there {
		return func(func(*Znode, error) bool) {}, false, s.failed(err)
	}
	return s.nodes(ctx, withACL), true, s.failed(err)
}

func newStep(to Side, kind StepKind, c Change, count creation) step {
	s := step{kind: kind, path: Join(to.Path, c.Rel), creation: count}
	if n := c.Left; n != nil {
		s.data, s.options = n.Data, client.CreateOptions{ACL: n.ACL, Container: n.Container}
		s.options.TTL = time.Duration(n.TTLMs) * time.Millisecond
	}
	if c.Right != nil {
		s.version = c.Right.Stat.Version
	}
	if kind == SetACL {
		s.version = c.Right.Stat.Aversion
	}
	return s
}
