package subtree

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Side is one of two subtrees.
type Side struct {
	ZK   *client.Client
	Path string
	// Connect is the connect string of ZK.
	Connect string
	Kinds   Kinds // of the znodes that ZK sees; Diff ignores Kinds
	// KindsAt is a zxid from before Kinds was read: znodes created later may be missing in Kinds.
	KindsAt proto.Zxid
	role    string // "source" or "target", for errors; empty: they do not name the side
}

// Change is a difference at one path below both roots.
type Change struct {
	Rel         string // as Znode.Rel
	Left, Right *Znode // nil if the znode does not exist on that side
	// The differences if both exist. Access: the znode cannot be read on one of the sides.
	Data, ACL, Ephemeral, Access bool
}

// Diff calls emit with each difference, in the order of a walk, and returns the number of equal
// paths. ACLs are compared only if withACL is true; versions, zxids and times never are.
func Diff(ctx context.Context, left, right Side, withACL bool, emit func(Change) error) (same int64, err error) {
	err = merge(left.nodes(ctx, withACL), right.nodes(ctx, withACL), func(c Change) error {
		if c.Left != nil && c.Right != nil && !c.Data && !c.ACL && !c.Ephemeral && !c.Access {
			same++
			return nil
		}
		return emit(c)
	})
	return same, err
}

// merge calls emit with each path of two sides, in the order of a walk.
func merge(left, right iter.Seq2[*Znode, error], emit func(Change) error) error {
	nextLeft, stopLeft := iter.Pull2(left)
	defer stopLeft()
	nextRight, stopRight := iter.Pull2(right)
	defer stopRight()
	a, errA, okA := nextLeft()
	b, errB, okB := nextRight()
	for okA || okB {
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		order := 0
		switch {
		case !okA:
			order = 1
		case !okB:
			order = -1
		default:
			order = compareRel(a.Rel, b.Rel)
		}
		var c Change
		if order <= 0 {
			c.Rel, c.Left = a.Rel, a
		}
		if order >= 0 {
			c.Rel, c.Right = b.Rel, b
		}
		if order == 0 {
			c.compare()
		}
		if err := emit(c); err != nil {
			return err
		}
		if order <= 0 {
			a, errA, okA = nextLeft()
		}
		if order >= 0 {
			b, errB, okB = nextRight()
		}
	}
	return nil
}

// compare fills in the differences of a znode on both sides.
func (c *Change) compare() {
	a, b := c.Left, c.Right
	if c.Access = a.Denied != nil || b.Denied != nil; c.Access {
		return
	}
	c.Data = !bytes.Equal(a.Data, b.Data) || (a.Data == nil) != (b.Data == nil)
	c.ACL = !slices.Equal(a.ACL, b.ACL)
	c.Ephemeral = (a.Stat.EphemeralOwner != 0) != (b.Stat.EphemeralOwner != 0)
}

var errStopped = errors.New("subtree: stopped")

// latest makes the server show every committed change, and reports whether the root exists.
func (s Side) latest(ctx context.Context) (there bool, err error) {
	err = retry(func() (err error) {
		if _, err = s.ZK.Sync(ctx, s.Path); err == nil {
			_, there, err = s.ZK.Exists(ctx, s.Path, false)
		}
		return err
	})
	return there, err
}

// nodes yields the znodes of a walk. An error is the last element.
func (s Side) nodes(ctx context.Context, withACL bool) iter.Seq2[*Znode, error] {
	return func(yield func(*Znode, error) bool) {
		err := Walk(ctx, s.ZK, s.Path, Options{Data: true, ACL: withACL, Below: All, NoSystem: true, Kinds: s.Kinds}, func(n *Znode) error {
			if !yield(n, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, s.failed(err))
		}
	}
}

// compareRel orders paths as a walk does: what is below a znode comes before its next sibling.
func compareRel(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) }
