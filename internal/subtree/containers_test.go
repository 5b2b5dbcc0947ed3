package subtree_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

func nodes(all ...*subtree.Znode) iter.Seq2[*subtree.Znode, error] {
	return func(yield func(*subtree.Znode, error) bool) {
		for _, n := range all {
			n.ACL = proto.OpenACL()
			if !yield(n, nil) {
				return
			}
		}
	}
}

// The server deletes a container whose counter has moved and that has no children. So a container
// whose children are ephemeral in the source keeps no counter.
func TestPatch_EmptyContainer(t *testing.T) {
	c, _ := start(t)
	root := &subtree.Znode{}
	lock := &subtree.Znode{Rel: "/lock", Depth: 1, Container: true, Stat: proto.Stat{Cversion: 4}}
	p, err := subtree.NewPatch(t.Context(), nodes(root, lock), subtree.Side{ZK: c, Path: "/t"}, 100)
	if err != nil || len(p.Counters)+len(p.Behind) > 0 {
		t.Errorf("%v, counters %v, behind %v", err, p.Counters, p.Behind)
	}
	child := &subtree.Znode{Rel: "/lock/a", Depth: 2}
	p, err = subtree.NewPatch(t.Context(), nodes(root, lock, child), subtree.Side{ZK: c, Path: "/t"}, 100)
	if want := []subtree.Counter{{Path: "/t/lock", By: 1}}; err != nil || !slices.Equal(p.Counters, want) {
		t.Errorf("%v, counters %v, want %v", err, p.Counters, want)
	}
}

func TestMirror_EmptyContainer(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/s", "/t")
	create(t, c, client.CreateOptions{Container: true}, "/s/lock", "/s/full")
	create(t, c, client.CreateOptions{Ephemeral: true}, "/s/lock/a", "/s/full/a")
	create(t, c, client.CreateOptions{}, "/s/full/b")
	kinds := subtree.Kinds{"/s/lock": 0, "/s/full": 0}
	m := &subtree.Mirror{From: subtree.Side{ZK: c, Path: "/s", Kinds: kinds, KindsAt: c.LastZxid()}, To: subtree.Side{ZK: c, Path: "/t"}, Creations: 100}
	d, err := m.Run(t.Context(), nil)
	if err != nil || d.Created != 3 || d.Counters != 1 {
		t.Errorf("%v, %+v", err, d)
	}
	_, lock, err1 := c.Get(t.Context(), "/t/lock", false)
	_, full, err2 := c.Get(t.Context(), "/t/full", false)
	if err := errors.Join(err1, err2); err != nil || lock.Cversion != 0 || full.Cversion == 1 {
		t.Errorf("%v, cversions %d and %d", err, lock.Cversion, full.Cversion)
	}
}
