package subtree_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const noLimit = 1 << 40

// saved returns the state of a subtree.
func saved(t testing.TB, c *client.Client, root string) iter.Seq2[*subtree.Znode, error] {
	t.Helper()
	var list []*subtree.Znode
	err := subtree.Walk(t.Context(), c, root, subtree.Options{Data: true, ACL: true, Below: subtree.All}, func(n *subtree.Znode) error {
		list = append(list, n)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*subtree.Znode, error) bool) {
		for _, n := range list {
			if n := *n; !yield(&n, nil) {
				return
			}
		}
	}
}

func patch(t testing.TB, c *client.Client, wanted iter.Seq2[*subtree.Znode, error], to string, limit int64) *subtree.Patch {
	t.Helper()
	p, err := subtree.NewPatch(t.Context(), wanted, subtree.Side{ZK: c, Path: to}, limit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nextNumber returns the number of the next sequential child.
func nextNumber(t testing.TB, c *client.Client, path string) string {
	t.Helper()
	created, _, err := c.Create(t.Context(), path+"/", nil, client.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// TestPatch_RootCounter: the Cversion of a new server's root is negative, which is not a large
// counter.
func TestPatch_RootCounter(t *testing.T) {
	c, _ := start(t)
	other, _ := start(t)
	if p := patch(t, other, func(yield func(*subtree.Znode, error) bool) {
		for n, err := range saved(t, c, "/") {
			if n.Depth == 0 && !yield(n, err) {
				return
			}
		}
	}, "/", 10); !p.Empty() || p.Behind != nil {
		t.Errorf("%+v", p)
	}
	_, stat, err := c.Get(t.Context(), "/", false)
	if err != nil || stat.Cversion != -1 {
		t.Errorf("%+v, %v: the root is no longer as ZooKeeper's", stat, err)
	}
	create(t, other, client.CreateOptions{}, "/a") // the live counter is 1, the wanted one is 0
	if p := patch(t, other, saved(t, c, "/"), "/", 10); p.Behind != nil {
		t.Errorf("%+v", p.Behind)
	}
}

// change makes random changes below a subtree.
func change(t testing.TB, c *client.Client, paths []string, r *rand.Rand) {
	t.Helper()
	var errs []error
	note := func(err error) {
		if !errors.Is(err, proto.ErrNoNode) && !errors.Is(err, proto.ErrNotEmpty) && !errors.Is(err, proto.ErrNodeExists) && !errors.Is(err, proto.ErrNoAuth) {
			errs = append(errs, err)
		}
	}
	for range 2 * len(paths) {
		path := paths[r.IntN(len(paths))]
		switch r.IntN(6) {
		case 0:
			_, _, err := c.Create(t.Context(), path+"/new", []byte("x"), client.CreateOptions{})
			note(err)
		case 1:
			_, err := c.Set(t.Context(), path, []byte(fmt.Sprint(r.IntN(3))), -1)
			note(err)
		case 2:
			_, err := c.SetACL(t.Context(), path, proto.OpenACL(), -1)
			note(err)
		default:
			note(c.Delete(t.Context(), path, -1))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A patch makes the subtree equal to the wanted one, whatever was there, and a second one is empty.
func TestPatch_MakesEqual(t *testing.T) {
	for seed := range uint64(3) {
		c, _ := start(t)
		if err := c.AddAuth(t.Context(), "digest", []byte("super:secret")); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		paths := grow(t, c, "/t", 100, seed)
		wanted := saved(t, c, "/t")
		change(t, c, paths, r)
		for _, to := range []string{"/t", "/other"} {
			p := patch(t, c, wanted, to, noLimit)
			if err := p.Apply(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			again := patch(t, c, wanted, to, 0)
			if !again.Empty() || again.Same != int64(len(paths)) || len(again.Behind) > 0 {
				t.Errorf("seed %d, %s: %d of %d the same, %v behind", seed, to, again.Same, len(paths), again.Behind)
			}
		}
	}
}

// Sequence numbers continue where they were, within the limit, also where the children are left
// out.
func TestPatch_MovesCounters(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/queue", "/t/locks", "/t/deep")
	for i := range 300 {
		for range 2 {
			last := nextNumber(t, c, "/t/queue")
			if i > 3 {
				if err := c.Delete(t.Context(), last, -1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	create(t, c, client.CreateOptions{Ephemeral: true}, "/t/locks/a", "/t/locks/b")
	create(t, c, client.CreateOptions{}, "/t/deep/a")
	wanted := saved(t, c, "/t")
	p := patch(t, c, wanted, "/new", 595)
	want := []subtree.Counter{{Path: "/new/locks", By: 2}, {Path: "/new/queue", By: 592}}
	if !slices.Equal(p.Counters, want) || len(p.Behind) > 0 || p.Ephemerals != 2 {
		t.Fatalf("counters %v, behind %v, %d ephemerals", p.Counters, p.Behind, p.Ephemerals)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/new/queue": "/new/queue/0000000600", "/new/locks": "/new/locks/0000000002", "/new/deep": "/new/deep/0000000001"} {
		if got := nextNumber(t, c, path); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if p := patch(t, c, wanted, "/limited", 591); !slices.Equal(p.Behind, []subtree.Counter{{Path: "/limited/queue", By: 592}}) {
		t.Errorf("beyond the limit: %v", p.Behind)
	}
}

// What somebody else changes between the comparison and the writes is never overwritten, and the
// next patch finishes.
func TestPatch_Conflicts(t *testing.T) {
	c, _ := start(t)
	for i, conflict := range []struct {
		what string
		do   func(root string) error
	}{
		{"data", func(root string) error { _, err := c.Set(t.Context(), root+"/set", []byte("mine"), -1); return err }},
		{"gone", func(root string) error { return c.Delete(t.Context(), root+"/set", -1) }},
		{"acl", func(root string) error { _, err := c.SetACL(t.Context(), root+"/acl", proto.OpenACL(), -1); return err }},
		{"created", func(root string) error {
			_, _, err := c.Create(t.Context(), root+"/gone", []byte("mine"), client.CreateOptions{})
			return err
		}},
		{"kept", func(root string) error { _, err := c.Set(t.Context(), root+"/new", []byte("mine"), -1); return err }},
		{"child", func(root string) error {
			_, _, err := c.Create(t.Context(), root+"/new/child", []byte("mine"), client.CreateOptions{})
			return err
		}},
	} {
		root := fmt.Sprint("/t", i)
		create(t, c, client.CreateOptions{}, root, root+"/set", root+"/acl", root+"/gone")
		wanted := saved(t, c, root)
		create(t, c, client.CreateOptions{}, root+"/new")
		_, err := c.Set(t.Context(), root+"/set", []byte("other"), -1)
		acl := append(proto.OpenACL(), proto.ACL{Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}})
		_, aclErr := c.SetACL(t.Context(), root+"/acl", acl, -1)
		if err := errors.Join(err, aclErr, c.Delete(t.Context(), root+"/gone", -1)); err != nil {
			t.Fatal(err)
		}
		p := patch(t, c, wanted, root, 0)
		if err := conflict.do(root); err != nil {
			t.Fatal(err)
		}
		before := saved(t, c, root)
		err = p.Apply(t.Context())
		if err == nil || !strings.Contains(err.Error(), "has changed since the comparison") {
			t.Errorf("%s: %v", conflict.what, err)
		}
		// The data and the other znodes are one transaction; only the ACL may be set.
		if conflict.what != "acl" && len(patch(t, c, before, root, 0).Changes[subtree.SetACL]) != 1 {
			t.Errorf("%s: the ACL is not set", conflict.what)
		}
		for _, kind := range []subtree.StepKind{subtree.Create, subtree.SetData, subtree.Delete} {
			if n := len(patch(t, c, before, root, 0).Changes[kind]); n > 0 {
				t.Errorf("%s: %d steps of kind %d were made", conflict.what, n, kind)
			}
		}
		if err := patch(t, c, wanted, root, 0).Apply(t.Context()); err != nil {
			t.Errorf("%s: again: %v", conflict.what, err)
		}
		if p := patch(t, c, wanted, root, 0); !p.Empty() {
			t.Errorf("%s: %+v", conflict.what, p.Changes)
		}
	}
}

// Live ephemeral znodes and their parents stay, those of the past do not come back, and none is
// replaced by a persistent znode.
func TestPatch_Ephemerals(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/old")
	create(t, c, client.CreateOptions{Ephemeral: true}, "/t/leader")
	wanted := saved(t, c, "/t")
	create(t, c, client.CreateOptions{}, "/t/new", "/t/new/a", "/t/new/b")
	create(t, c, client.CreateOptions{Ephemeral: true}, "/t/new/a/session")
	p := patch(t, c, wanted, "/t", 0)
	if want := []string{"/t/new", "/t/new/a"}; !slices.Equal(p.Kept, want) || p.Ephemerals != 1 {
		t.Errorf("kept %v, want %v; %d ephemerals", p.Kept, want, p.Ephemerals)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := walk(t, c, "/t", subtree.Options{Below: subtree.All}), []string{"/t", "/t/leader", "/t/new", "/t/new/a", "/t/new/a/session", "/t/old"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := c.Delete(t.Context(), "/t/old", -1); err != nil {
		t.Fatal(err)
	}
	create(t, c, client.CreateOptions{Ephemeral: true}, "/t/old")
	_, err := subtree.NewPatch(t.Context(), wanted, subtree.Side{ZK: c, Path: "/t"}, 0)
	if err == nil || !strings.Contains(err.Error(), "/t/old is an ephemeral znode of session") {
		t.Error(err)
	}
}

// More changes than fit into one transaction; the data of a znode may alone be larger than a batch.
func TestPatch_Large(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t")
	for i := range 700 {
		create(t, c, client.CreateOptions{}, fmt.Sprint("/t/", i))
	}
	if _, err := c.Set(t.Context(), "/t/7", make([]byte, 900_000), -1); err != nil {
		t.Fatal(err)
	}
	wanted := saved(t, c, "/t")
	if err := patch(t, c, wanted, "/u", 0).Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	small := patch(t, c, func(yield func(*subtree.Znode, error) bool) {
		for n, err := range wanted {
			yield(n, err)
			return
		}
	}, "/u", 0)
	if len(small.Changes[subtree.Delete]) != 700 {
		t.Fatal(small.Done())
	}
	if err := small.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := walk(t, c, "/u", subtree.Options{Below: subtree.All}); len(got) != 1 || small.Done() != "deleted 700 of 700" {
		t.Errorf("%d znodes, %s", len(got), small.Done())
	}
}
