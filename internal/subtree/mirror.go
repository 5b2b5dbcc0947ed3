package subtree

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Mirror makes the live subtree To equal to the live subtree From. Unlike Patch it writes while it
// compares, so its memory is bounded like that of a walk.
//
// Ephemeral znodes belong to sessions: those of From are left out, those of To stay. If both sides
// have Kinds, a znode of To that has another kind, and no children, is created again. Each write
// names the version that was compared. After an error run it again.
type Mirror struct {
	From, To   Side
	WithoutACL bool  // neither compare nor copy ACLs
	DryRun     bool  // only count
	Creations  int64 // a run creates at most this many znodes to move sequence counters forward
	// Renewed has the last write of each TTL znode of From that a run has seen, by path. A run sets
	// the data of a TTL znode that was written since then, even if it is equal, so that the znode
	// of To lives as long. Nil: it does not.
	Renewed map[string]proto.Zxid
}

// Mirrored is the outcome of a run of a Mirror.
type Mirrored struct {
	Same, Created, Data, ACLs, Deleted int64

	Counters   int64    // sequence counters that were moved forward
	Behind     int64    // sequence counters that stay behind because of Mirror.Creations
	Ephemerals int64    // ephemeral znodes of From
	Kept       int64    // znodes of To that stay, because a live ephemeral znode is below them
	Renewed    int64    // TTL znodes with the same data that were set to live longer
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
	from, to := m.From, m.To
	from.role, to.role = "source", "target"
	withACL, out := !m.WithoutACL, writer{zk: to.ZK}
	p := plan{from: from, to: to, whole: rels == nil, limit: m.Creations, renewed: m.Renewed}
	if m.DryRun {
		p.renewed = nil
	}
	p.emit = func(kind StepKind, c Change, count creation) error {
		if m.DryRun {
			return nil
		}
		return to.failed(out.do(ctx, newStep(to, kind, c, count)))
	}
	left, there, err := from.prepare(ctx, withACL)
	switch {
	case err != nil:
		return p.Mirrored, withRemedy(err)
	case !there:
		return p.Mirrored, from.noRoot()
	}
	right, _, err := to.prepare(ctx, withACL)
	if err != nil {
		return p.Mirrored, withRemedy(err)
	}
	if !p.whole {
		rels = slices.Compact(slices.SortedFunc(slices.Values(rels), compareRel))
		left, right = from.some(ctx, rels, withACL), to.some(ctx, rels, withACL)
	}
	if err = p.run(left, right); err == nil {
		err = to.failed(out.flush(ctx))
	}
	if err != nil {
		clear(p.renewed) // nobody knows which were written
	}
	return p.Mirrored, withRemedy(err)
}

// failed names the side in an error, if it has a role.
func (s Side) failed(err error) error {
	if err == nil || s.role == "" {
		return err
	}
	return fmt.Errorf("the %s: %w", s.role, err)
}

func (s Side) noRoot() error {
	return fmt.Errorf("the source has no %s: nothing is deleted in the target", s.Path)
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
				if !yield(n, s.failed(errs[i])) || errs[i] != nil {
					return
				}
			}
		}
	}
}
