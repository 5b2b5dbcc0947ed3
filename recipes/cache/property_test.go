package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

// replay applies events and checks that each may follow the previous ones.
type replay struct {
	slow time.Duration // duration of the processing of each event

	mu       sync.Mutex
	znodes   map[string]*cache.Znode
	newest   map[string]int64 // Mzxid by path, also of removed znodes
	complete bool
	wrong    error
}

func newReplay(slow time.Duration) *replay {
	return &replay{slow: slow, znodes: make(map[string]*cache.Znode), newest: make(map[string]int64)}
}

func (r *replay) apply(e cache.Event) {
	time.Sleep(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong != nil {
		return
	}
	if err := r.step(e); err != nil {
		r.wrong = fmt.Errorf("%v %s: %w", e.Type, e.Path(), err)
	}
}

func (r *replay) step(e cache.Event) error {
	switch e.Type {
	case cache.Complete, cache.Stale:
		if r.complete == (e.Type == cache.Complete) {
			return errors.New("twice")
		}
		r.complete = e.Type == cache.Complete
		return nil
	}
	p := e.Path()
	if r.znodes[p] != e.Old {
		return fmt.Errorf("old is %+v, not %+v", e.Old, r.znodes[p])
	}
	if e.New == nil {
		delete(r.znodes, p)
		return nil
	}
	z := e.New
	if (e.Type == cache.Changed) != (e.Old != nil && int64(e.Old.Stat.Czxid) == int64(z.Stat.Czxid)) {
		return fmt.Errorf("from %+v to %+v", e.Old, z)
	}
	if int64(z.Stat.Mzxid) <= r.newest[p] {
		return fmt.Errorf("mzxid %x after %x", int64(z.Stat.Mzxid), r.newest[p])
	}
	r.znodes[p], r.newest[p] = z, int64(z.Stat.Mzxid)
	return nil
}

// compare compares with the tree and with the content of the cache.
func (r *replay) compare(want map[string]string, all []*cache.Znode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong != nil {
		return r.wrong
	}
	got := make(map[string]string)
	for _, z := range all {
		got[z.Path] = string(z.Data)
		if r.znodes[z.Path] != z {
			return fmt.Errorf("%s is not what events say", z.Path)
		}
	}
	switch {
	case !r.complete:
		return errors.New("no Complete")
	case len(r.znodes) != len(all):
		return fmt.Errorf("%d znodes by events, %d in the cache", len(r.znodes), len(all))
	case !maps.Equal(got, want):
		return fmt.Errorf("cache %q\ntree  %q", got, want)
	}
	return nil
}

// change is a change of the tree.
type change struct {
	What  string
	Path  string
	Pause time.Duration
}

var places = []string{"/a", "/a/x", "/a/y", "/a/z", "/a/x/1", "/a/x/2", "/a/y/1", "/a/x/1/d"}

func drawChanges(rt *rapid.T) []change {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
		return change{
			What:  rapid.SampledFrom([]string{"create", "create", "set", "delete", "again", "ephemeral"}).Draw(rt, "what"),
			Path:  rapid.SampledFrom(places).Draw(rt, "path"),
			Pause: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 50, 700}).Draw(rt, "pause")) * time.Millisecond,
		}
	}), 1, 25).Draw(rt, "changes")
}

func (x change) make(ctx context.Context, c *recipes.Client, data string) error {
	create := func(ephemeral bool) error {
		_, err := c.Create(ctx, x.Path, []byte(data), recipes.CreateOptions{Ephemeral: ephemeral})
		return err
	}
	switch x.What {
	case "create":
		return create(false)
	case "ephemeral":
		return create(true)
	case "set":
		_, err := c.Set(ctx, x.Path, []byte(data), -1)
		return err
	case "rebuild": // afterwards the children of /a/x belong to another znode, with the same names
		_, err := c.Multi(ctx,
			client.DeleteOp("/a/x/1", -1), client.DeleteOp("/a/x", -1),
			client.CreateOp("/a/x", []byte(data), client.CreateOptions{ACL: proto.OpenACL()}),
			client.CreateOp("/a/x/1", []byte(data), client.CreateOptions{ACL: proto.OpenACL()}))
		return err
	case "blink": // it is read because it was set, at the moment when it is missing
		_, err := c.Set(ctx, x.Path, []byte(data), -1)
		time.Sleep(time.Millisecond)
		err = errors.Join(err, c.Delete(ctx, x.Path, -1))
		time.Sleep(2 * time.Millisecond)
		return errors.Join(err, create(false))
	case "delete":
		return c.Delete(ctx, x.Path, -1)
	default: // deleted and created again, which must not be seen as one step
		_, err := c.Multi(ctx, client.DeleteOp(x.Path, -1),
			client.CreateOp(x.Path, []byte(data), client.CreateOptions{ACL: proto.OpenACL()}))
		return err
	}
}

// After random changes and failures, when all is quiet, each cache equals the tree, and so does the
// result of its events. Nothing gets older on the way.
func TestC1C2C3C4C5(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		changes := drawChanges(rt)
		kind := rapid.SampledFrom(recipetest.Kinds()).Draw(rt, "kind")
		slow := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 400}).Draw(rt, "slow")) * time.Millisecond
		return members, func(t testing.TB, w *recipetest.World) {
			follow(t, w, 0, w.Open(kind), w.Client(), changes, slow, func() { w.Apply(troubles); time.Sleep(2 * recipetest.Timeout) })
		}
	})
}

// Requests arrive and answers are processed in random order.
func TestC1C2C3C4_Overtaking(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		changes := append([]change{{"create", "/a", 0}, {"create", "/a/x", 0}, {"create", "/a/x/1", 0}}, rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
			return change{
				What:  rapid.SampledFrom([]string{"rebuild", "rebuild", "blink", "blink", "delete", "create", "set", "again"}).Draw(rt, "what"),
				Path:  rapid.SampledFrom([]string{"/a/x", "/a/x/1", "/a/x/1", "/a/y"}).Draw(rt, "path"),
				Pause: time.Duration(rapid.SampledFrom([]int{0, 0, 1, 2, 3, 5, 40}).Draw(rt, "pause")) * time.Millisecond,
			}
		}), 1, 25).Draw(rt, "changes")...)
		depth := rapid.SampledFrom([]int{0, 100}).Draw(rt, "depth")
		delays := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 2, 3, 10}), 2, 101).Draw(rt, "delays in ms")
		return 1, func(t testing.TB, w *recipetest.World) {
			reader, hooks := w.Hooked()
			var n atomic.Int64
			delay := func() {
				time.Sleep(time.Duration(delays[int(n.Add(1))%len(delays)]) * time.Millisecond)
			}
			hooks.Arm(func(recipetest.Request) error { delay(); return nil }, func(recipetest.Request) { delay() })
			follow(t, w, depth, reader, w.Client(), changes, 0, func() {})
			hooks.Arm(nil, nil)
		}
	})
}

// follow makes the changes with writer while caches of all kinds follow them, and compares. With
// depth 0 the tree uses a recursive watch, if reader has such watches.
func follow(t testing.TB, w *recipetest.World, depth int, reader, writer *recipes.Client, changes []change, slow time.Duration, meanwhile func()) {
	t.Helper()
	tree := cache.NewTree(reader, "/a", cache.TreeOptions{Depth: depth})
	children := cache.NewChildren(reader, "/a")
	node := cache.NewZnode(reader, "/a/x")
	var (
		data, names = make(chan string, 1000), make(chan string, 1000)
		replays     = []*replay{newReplay(slow), newReplay(0), newReplay(0)}
		working     sync.WaitGroup
		ctx, cancel = context.WithCancel(t.Context())
	)
	tree.Listen(ctx, replays[0].apply)
	children.Listen(ctx, replays[1].apply)
	node.Listen(ctx, replays[2].apply)
	must(t, tree.Start(ctx))
	must(t, children.Start(ctx))
	must(t, node.Start(ctx))
	working.Go(func() {
		// The error is always that ctx has ended.
		_ = cache.WatchData(ctx, reader, "/a/y", func(z *cache.Znode) bool { data <- fmt.Sprint(z != nil); return true })
	})
	working.Go(func() {
		_ = cache.WatchChildren(ctx, reader, "/a", func(n []string) bool { names <- strings.Join(n, " "); return true })
	})
	changing := make(chan struct{})
	go func() {
		defer close(changing)
		for i, x := range changes {
			time.Sleep(x.Pause)
			_ = x.make(ctx, writer, fmt.Sprint(i)) // it may exist already, or be missing
		}
	}()
	meanwhile()
	<-changing
	time.Sleep(5 * time.Second)
	synctest.Wait()

	want := w.Tree("/")
	maps.DeleteFunc(want, func(p, _ string) bool { return p != "/a" && !strings.HasPrefix(p, "/a/") })
	if err := replays[0].compare(want, tree.All()); err != nil {
		t.Errorf("tree: %v", err)
	}
	below := maps.Clone(want)
	maps.DeleteFunc(below, func(p, _ string) bool { return path.Dir(p) != "/a" })
	if err := replays[1].compare(below, children.All()); err != nil {
		t.Errorf("children: %v", err)
	}
	var one []*cache.Znode
	if z := node.Get("/a/x"); z != nil {
		one = append(one, z)
	}
	maps.DeleteFunc(want, func(p, _ string) bool { return p != "/a/x" })
	if err := replays[2].compare(want, one); err != nil {
		t.Errorf("node: %v", err)
	}
	if !tree.Complete() || !children.Complete() || !node.Complete() {
		t.Error("not complete")
	}
	var wantNames []string
	for _, z := range children.All() {
		wantNames = append(wantNames, path.Base(z.Path))
	}
	if got := last(names); got != strings.Join(wantNames, " ") {
		t.Errorf("children are %q, the watch says %q", wantNames, got)
	}
	if got := last(data); got != fmt.Sprint(children.Get("/a/y") != nil) {
		t.Errorf("the watch of /a/y says %q", got)
	}
	cancel()
	must(t, tree.Close())
	must(t, children.Close())
	must(t, node.Close())
	working.Wait()
}

// last returns the last word in a channel.
func last(ch chan string) (word string) {
	for {
		select {
		case word = <-ch:
		default:
			return word
		}
	}
}
