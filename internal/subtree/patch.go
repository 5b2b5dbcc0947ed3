package subtree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

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
	Changes  [Delete + 1][]Change // Left is wanted, Right is live; in the order of a walk
	Counters []Counter            // sequence counters that Apply moves forward
	Behind   []Counter            // sequence counters beyond the limit, which stay behind

	Same       int64
	Ephemerals int64    // ephemeral znodes of the wanted state
	Kept       []string // paths that stay, because a live ephemeral znode is below them

	out writer
}

// NewPatch compares the subtree to with the wanted znodes, which are in the order of a walk.
// Counters are moved forward by at most limit creations in total. The error names a znode that
// cannot be compared or restored.
func NewPatch(ctx context.Context, wanted iter.Seq2[*Znode, error], to Side, limit int64) (*Patch, error) {
	p := &Patch{To: to, out: writer{zk: to.ZK}}
	live, _, err := to.prepare(ctx, true)
	if err != nil {
		return nil, err
	}
	d := plan{from: Side{Path: to.Path}, to: to, whole: true, limit: limit, emit: p.note}
	d.from.role, d.to.role = "source", "target"
	if err := d.run(wanted, live); err != nil {
		return nil, withRemedy(err)
	}
	p.Same, p.Ephemerals = d.Same, d.Ephemerals
	// A plan emits these steps of a znode after those of its descendants.
	deletes := p.Changes[Delete]
	sort.Slice(deletes, func(i, j int) bool { return compareRel(deletes[i].Rel, deletes[j].Rel) < 0 })
	slices.SortFunc(p.Kept, compareRel)
	for _, list := range [][]Counter{p.Counters, p.Behind} {
		sort.Slice(list, func(i, j int) bool { return compareRel(list[i].Path, list[j].Path) < 0 })
	}
	return p, nil
}

func (p *Patch) note(kind StepKind, c Change, count creation) error {
	path := Join(p.To.Path, c.Rel)
	switch kind {
	case keep:
		p.Kept = append(p.Kept, path)
	case moveCounter:
		p.Counters = append(p.Counters, Counter{Path: path, By: count.by})
	case leaveBehind:
		p.Behind = append(p.Behind, Counter{Path: path, By: count.by})
	default:
		if c.Right != nil {
			c.Right.Data = nil
		}
		p.Changes[kind] = append(p.Changes[kind], c)
	}
	return nil
}

// Apply makes the changes, at once if they fit into a transaction, except ACLs, which have none.
func (p *Patch) Apply(ctx context.Context) error {
	err := p.apply(ctx)
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case Conflict(err):
		return fmt.Errorf("%s has changed since the comparison: %w", cmp.Or(e.Path, p.To.Path), err)
	case e.Unknown:
		return fmt.Errorf("the last transaction may have been executed or not: %w", err)
	}
	return withRemedy(err)
}

// Conflict reports whether a znode changed between its comparison and the write, as when the source
// of a Mirror deletes and creates it at that time.
func Conflict(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains([]proto.ErrCode{
		proto.ErrBadVersion, proto.ErrNoNode, proto.ErrNodeExists, proto.ErrNotEmpty,
	}, e.Code)
}

func withRemedy(err error) error {
	if errors.Is(err, proto.ErrNoAuth) {
		err = fmt.Errorf("%w; authenticate as a user who may, such as the superuser", err)
	}
	return err
}

func (p *Patch) apply(ctx context.Context) error {
	slices.Reverse(p.Changes[Delete]) // children first
	defer slices.Reverse(p.Changes[Delete])
	for kind, changes := range p.Changes {
		for _, c := range changes {
			if err := p.out.do(ctx, newStep(p.To, StepKind(kind), c, creation{})); err != nil {
				return err
			}
		}
		if StepKind(kind) != Create {
			continue
		}
		for _, c := range p.Counters {
			if err := p.out.do(ctx, step{kind: moveCounter, path: c.Path, creation: creation{by: c.By}}); err != nil {
				return err
			}
		}
	}
	return p.out.flush(ctx)
}

// Empty reports whether there is nothing to do.
func (p *Patch) Empty() bool {
	return len(p.Counters) == 0 && !slices.ContainsFunc(p.Changes[:], func(list []Change) bool { return len(list) > 0 })
}

// Done says how many changes of each kind Apply has made.
func (p *Patch) Done() string {
	text := ""
	for kind, name := range []string{"ACLs set", "created", "data set", "deleted"} {
		if n := len(p.Changes[kind]); n > 0 {
			text += fmt.Sprintf(", %s %d of %d", name, p.out.done[kind], n)
		}
	}
	return cmp.Or(strings.TrimPrefix(text, ", "), "only counters")
}
