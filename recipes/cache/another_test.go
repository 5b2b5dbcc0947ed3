package cache_test

import (
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/zktest"
)

// inTree returns the data of all cached znodes, by path.
func inTree(tree *cache.Tree) map[string]string {
	got := make(map[string]string)
	for _, z := range tree.All() {
		got[z.Path] = string(z.Data)
	}
	return got
}

func expectTree(t testing.TB, tree *cache.Tree, want map[string]string) {
	t.Helper()
	if got := inTree(tree); !tree.Complete() || !maps.Equal(got, want) {
		t.Errorf("complete: %v, %q\nwant %q", tree.Complete(), got, want)
	}
}

// A part of the tree that may not be read is left out. It returns, with its descendants, when it
// may be read and the parent's list changes.
func TestC1_Refused(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/b": "1", "/a/b/c": "2"})
		c := w.Client()
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		must(t, tree.Start(t.Context()))
		must(t, tree.Wait(t.Context()))
		conn := w.Connect(t)
		_, err := conn.SetACL("/a/b", zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		must(t, err)
		w.ExpireSession(c.Session().ID()) // a right that is withdrawn is no event: the next session reads everything
		time.Sleep(recipetest.Timeout)
		expectTree(t, tree, map[string]string{"/a": ""})
		_, err = conn.SetACL("/a/b", zk.WorldACL(zk.PermAll), -1)
		must(t, err)
		w.Load(map[string]string{"/a/z": ""})
		time.Sleep(time.Second)
		expectTree(t, tree, map[string]string{"/a": "", "/a/b": "1", "/a/b/c": "2", "/a/z": ""})
	})
}

// A znode is deleted that may not be read any longer, which the server does not report to a
// recursive watch: the next change of the parent's list shows the deletion. Watches of the list
// show the deletion at once.
func TestC1_Withdrawn(t *testing.T) {
	always := func(string) bool { return true }
	for _, o := range []cache.TreeOptions{{}, {Enter: always}} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/a": "", "/a/x": "1"})
			tree := cache.NewTree(w.Client(), "/a", o)
			defer tree.Close()
			must(t, tree.Start(t.Context()))
			must(t, tree.Wait(t.Context()))
			conn := w.Connect(t)
			_, err := conn.SetACL("/a/x", zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
			must(t, err)
			must(t, conn.Delete("/a/x", -1))
			if o.Enter == nil {
				w.Load(map[string]string{"/a/y": ""})
				must(t, conn.Delete("/a/y", -1))
			}
			time.Sleep(time.Second)
			expectTree(t, tree, map[string]string{"/a": ""})
		})
	}
}

// A znode was read again while it was deleted: first found, then missing. The parent's list is
// answered when it exists again, and must cause another read.
func TestC1_MissingBetween(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/x": "1"})
		c, h := w.Hooked()
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		must(t, tree.Start(t.Context()))
		must(t, tree.Wait(t.Context()))
		found, listed := make(chan struct{}), make(chan struct{})
		var reads atomic.Int64
		h.Arm(func(r recipetest.Request) error {
			if r.Op == zktest.Children {
				<-listed
			}
			return nil
		}, func(r recipetest.Request) {
			if r.Op == zktest.Get && reads.Add(1) == 1 {
				<-found
			}
		})
		w.Load(map[string]string{"/a/x": "2"})
		time.Sleep(time.Second)
		must(t, w.Client().Delete(t.Context(), "/a/x", -1))
		time.Sleep(time.Second)
		close(found)
		time.Sleep(time.Second)
		w.Load(map[string]string{"/a/x": "3"})
		time.Sleep(time.Second)
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads", n)
		}
		close(listed)
		time.Sleep(time.Second)
		expectTree(t, tree, map[string]string{"/a": "", "/a/x": "3"})
	})
}

// The servers' data are restored to an earlier state.
func TestC1_Rewound(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/b": "1", "/a/b/c": "2", "/a/d": "3"})
		before, want := w.Snapshot(), w.Tree("/a")
		w.Load(map[string]string{"/a/b": "new", "/a/x": ""})
		c, h := w.Hooked()
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		must(t, tree.Start(t.Context()))
		must(t, tree.Wait(t.Context()))
		// Requests take time: otherwise an endless loop of them would stop the bubble's clock.
		h.Arm(func(recipetest.Request) error { time.Sleep(time.Millisecond); return nil }, nil)
		w.Rewind(before)
		time.Sleep(time.Second)
		expectTree(t, tree, want)
		if n := len(h.Requests()); n > 30 {
			t.Errorf("%d requests", n)
		}
	})
}

// The servers have lost everything, or are different ones: their zxids begin again.
func TestC1_OtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := zktest.Start(t), zktest.Start(t)
		at := one
		one.Load(map[string]string{"/a": "0"}) // with the same zxid as on the other
		other.Load(map[string]string{"/a": "1"})
		if before, after := one.Znode("/a"), other.Znode("/a"); int64(before.Stat.Mzxid) != int64(after.Stat.Mzxid) {
			t.Fatalf("0x%x and 0x%x", int64(before.Stat.Mzxid), int64(after.Stat.Mzxid))
		}
		other.Load(map[string]string{"/a/b": "other"})
		for i := range 10 {
			one.Load(map[string]string{"/a/b": fmt.Sprint(i)})
			one.Load(map[string]string{"/a/x": ""})
		}
		c, err := recipes.Connect(t.Context(), []string{"service:2181"}, recipes.Retry(recipes.Forever(30*time.Millisecond)),
			recipes.Dialer(func(network, _ string, timeout time.Duration) (net.Conn, error) {
				time.Sleep(time.Millisecond)
				return at.Dialer()(network, at.ConnectString(), timeout)
			}))
		must(t, err)
		defer func() { must(t, c.Close()) }()
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		must(t, tree.Start(t.Context()))
		must(t, tree.Wait(t.Context()))
		node := cache.NewZnode(c, "/a")
		defer node.Close()
		must(t, node.Start(t.Context()))
		must(t, node.Wait(t.Context()))
		at = other
		one.Stop()
		time.Sleep(3 * recipetest.Timeout)
		expectTree(t, tree, map[string]string{"/a": "1", "/a/b": "other"})
		if z := node.Get("/a"); z == nil || string(z.Data) != "1" {
			t.Errorf("%+v", z)
		}
	})
}
