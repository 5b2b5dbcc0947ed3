package cache_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

// requests returns the requests since the last call, in no order, with the number of each: "2
// children+watch".
func requests(h *recipetest.Hooks) string {
	time.Sleep(2 * time.Second)
	var all []string
	for _, r := range h.Requests() {
		all = append(all, r.String()+" "+r.Path)
	}
	h.Arm(nil, nil)
	return strings.Join(all, ", ")
}

func expectRequests(t testing.TB, h *recipetest.Hooks, what, want string) {
	t.Helper()
	if got := requests(h); got != want {
		t.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

// TestCost_Children compares with Curator's PathChildrenCache, which also sends two requests to
// create the path:
//
//	start of n children   children, n gets        PathChildrenCache.refresh, processChildren, getDataAndStat
//	a change              get                     its dataWatcher
//	an addition           children, get           its childrenWatcher, then as at the start
//	a removal             children                its dataWatcher removes, its childrenWatcher refreshes
//	a reconnect           children, n gets        RefreshMode.FORCE_GET_DATA_AND_STAT
func TestCost_Children(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		const n = 200
		load := map[string]string{"/a": ""}
		for i := range n {
			load[fmt.Sprintf("/a/%03d", i)] = "x"
		}
		w.Load(load)
		c, h := w.Hooked()
		other := w.Client()
		children := cache.NewChildren(c, "/a")
		defer children.Close()
		cost := h.Cost(func() {
			must(t, children.Start(t.Context()))
			if err := children.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
		// 64 requests are in flight at a time, so this takes 1 + 200/64 round trips.
		if len(cost.Requests) != 1+n || cost.RoundTrips > 5 {
			t.Errorf("%d requests, %d round trips", len(cost.Requests), cost.RoundTrips)
		}
		requests(h)
		must(t, set(other, "/a/007"))
		expectRequests(t, h, "change", "get+watch /a/007")
		must(t, create(other, "/a/new"))
		expectRequests(t, h, "addition", "children+watch /a, get+watch /a/new")
		must(t, other.Delete(t.Context(), "/a/007", -1))
		expectRequests(t, h, "removal", "children+watch /a")
		_, err := other.Multi(t.Context(), client.DeleteOp("/a/008", -1), client.CreateOp("/a/008", nil, client.CreateOptions{ACL: proto.OpenACL()}))
		must(t, err)
		expectRequests(t, h, "created again", "children+watch /a, get+watch /a/008")
		w.CloseConnections()
		if got := strings.Split(requests(h), ", "); len(got) != 1+n {
			t.Errorf("reconnect: %d requests", len(got))
		}
		w.Leader().Server().ExpireSession(t.Context(), c.Session().ID()) //nolint:errcheck // the checks below would show it
		time.Sleep(recipetest.Timeout)
		if got := requests(h); strings.Count(got, "sync") != 1 || strings.Count(got, "children") != 1 || strings.Count(got, "get") != n {
			t.Errorf("new session: %d sync, %d children, %d get", strings.Count(got, "sync"), strings.Count(got, "children"), strings.Count(got, "get"))
		}
	})
}

// Curator's NodeCache sends exists and get each time; kazoo's DataWatch sends the same as this
// cache.
func TestCost_ZnodeCache(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": ""})
		c, h := w.Hooked()
		other := w.Client()
		node := cache.NewZnode(c, "/a")
		defer node.Close()
		h.Arm(nil, nil)
		must(t, node.Start(t.Context()))
		expectRequests(t, h, "start", "get+watch /a")
		must(t, set(other, "/a"))
		expectRequests(t, h, "change", "get+watch /a")
		must(t, other.Delete(t.Context(), "/a", -1))
		expectRequests(t, h, "removal", "exists+watch /a")
		must(t, create(other, "/a"))
		expectRequests(t, h, "creation", "get+watch /a")
		w.CloseConnections()
		if got := requests(h); !strings.HasPrefix(got, "get") || strings.Contains(got, ",") { // with or without a watch: the Client decides
			t.Errorf("reconnect: %s", got)
		}
	})
}

// Curator's and kazoo's TreeCache also list the children of ephemerals, which cannot have any.
func TestCost_Tree(t *testing.T) {
	for _, o := range []cache.TreeOptions{{}, {Depth: 100}} {
		testCostTree(t, o)
	}
}

func testCostTree(t *testing.T, o cache.TreeOptions) {
	t.Helper()
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		expectRequests := func(t testing.TB, h *recipetest.Hooks, what, want string) {
			t.Helper()
			if o.Depth == 0 { // one recursive watch
				want = strings.ReplaceAll(want, "+watch", "")
			}
			expectRequests(t, h, what, want)
		}
		w.Load(map[string]string{"/a": "", "/a/b": ""})
		c, h := w.Hooked()
		other := w.Client()
		tree := cache.NewTree(c, "/a", o)
		defer tree.Close()
		h.Arm(nil, nil)
		must(t, tree.Start(t.Context()))
		expectRequests(t, h, "start", "get+watch /a, children+watch /a, get+watch /a/b, children+watch /a/b")
		must(t, set(other, "/a/b"))
		expectRequests(t, h, "change", "get+watch /a/b")
		must(t, create(other, "/a/b/c"))
		expectRequests(t, h, "addition", "children+watch /a/b, get+watch /a/b/c, children+watch /a/b/c")
		_, err := other.Create(t.Context(), "/a/e", nil, recipes.CreateOptions{Ephemeral: true})
		must(t, err)
		expectRequests(t, h, "ephemeral", "children+watch /a, get+watch /a/e")
		must(t, other.Delete(t.Context(), "/a/b/c", -1))
		expectRequests(t, h, "removal", "children+watch /a/b")
		must(t, other.Delete(t.Context(), "/a/b", -1))
		expectRequests(t, h, "removal", "children+watch /a")
		must(t, other.Delete(t.Context(), "/a/e", -1))
		expectRequests(t, h, "removal", "children+watch /a")
		must(t, other.Delete(t.Context(), "/a", -1))
		expectRequests(t, h, "removal of the first", "exists+watch /a")
	})
}

// TestCost_Election: caches whose server is lost read what changed meanwhile from another one, and
// nothing else.
func TestCost_Election(t *testing.T) {
	caches, znodes := exhaustive.Or(6, 200), exhaustive.Or(50, 1000)
	recipetest.Run(t, 3, func(t testing.TB, w *recipetest.World) {
		load, want := map[string]string{"/a": ""}, map[string]string{}
		for i := range znodes {
			load[fmt.Sprintf("/a/%04d", i)] = "x"
		}
		w.Load(load)
		other := w.Client()
		trees, hooks := make([]*cache.Tree, caches), make([]*recipetest.Hooks, caches)
		clients := make([]*recipes.Client, caches)
		for i := range trees {
			clients[i], hooks[i] = w.Hooked()
			trees[i] = cache.NewTree(clients[i], "/a", cache.TreeOptions{})
			defer trees[i].Close()
			must(t, trees[i].Start(t.Context()))
		}
		count := func(what string, most int) {
			t.Helper()
			time.Sleep(recipetest.Timeout)
			reads := 0
			for i, tree := range trees {
				reads += len(hooks[i].Requests())
				hooks[i].Arm(nil, nil)
				want["/a"] = ""
				if got := inTree(tree); !tree.Complete() || len(got) != len(want) || got["/a/0007"] != want["/a/0007"] {
					t.Errorf("%s: cache %d: complete %t, %d znodes, want %d", what, i, tree.Complete(), len(got), len(want))
				}
			}
			if t.Logf("%s: %d reads", what, reads); reads > most {
				t.Errorf("%s: %d reads, want %d", what, reads, most)
			}
		}
		maps.Copy(want, load)
		count("start", caches*(2*znodes+2))
		leader := w.Leader()
		leader.Kill()
		count("the leader is lost", 0)
		leader.Start()
		count("it is back", 0)
		for _, c := range clients {
			w.Unplug(c)
		}
		must(t, set(other, "/a/0007"))
		must(t, create(other, "/a/new"))
		must(t, other.Delete(t.Context(), "/a/0003", -1))
		want["/a/0007"] = "set"
		for _, c := range clients {
			w.Plug(c)
		}
		count("three changes", 4*caches) // a list, two gets, and the list of the new znode
	})
}

// One request per change, as in kazoo.
func TestCost_Watches(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": ""})
		c, h := w.Hooked()
		other := w.Client()
		h.Arm(nil, nil)
		calls, ended := 0, make(chan error)
		go func() {
			ended <- cache.WatchChildren(t.Context(), c, "/a", func([]string) bool { calls++; return calls < 3 })
		}()
		expectRequests(t, h, "start", "children+watch /a")
		must(t, create(other, "/a/b"))
		expectRequests(t, h, "addition", "children+watch /a")
		must(t, set(other, "/a/b"))
		expectRequests(t, h, "data", "")
		must(t, other.Delete(t.Context(), "/a/b", -1))
		expectRequests(t, h, "removal", "children+watch /a")
		if err := <-ended; err != nil || calls != 3 {
			t.Errorf("%d calls, %v", calls, err)
		}
		must(t, create(other, "/a/b"))
		expectRequests(t, h, "after the end", "")
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
