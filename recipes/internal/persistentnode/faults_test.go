package persistentnode_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
)

// TestSteps_Kept is K1 and K2 with each kind of fault at each request: in the end there is one
// znode with the last data.
func TestSteps_Kept(t *testing.T) {
	for _, mode := range []recipes.CreateOptions{{Ephemeral: true}, {Ephemeral: true, Sequential: true}, {TTL: time.Hour}} {
		t.Run(fmt.Sprintf("%+v", mode), func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				n := persistentnode.New(s.Client, "/dir/n", []byte("1"), mode)
				s.Arm()
				keep(n)
				if _, err := n.Wait(s.Ctx); err != nil && s.Ctx.Err() == nil {
					t.Fatal(err)
				}
				if err := n.SetData(s.Ctx, []byte("2")); err != nil && s.Ctx.Err() == nil {
					t.Error(err)
				}
				s.Settle()
				path, err := n.Path()
				if err != nil {
					t.Fatal(err)
				}
				s.AssertChildren("/dir", path[len("/dir/"):])
				s.AssertData(path, "2")
				if mode.Ephemeral {
					s.AssertOwner(path, s.Client.Session().ID())
				}
				if err := n.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if mode.TTL == 0 {
					s.AssertChildren("/dir")
				}
			})
		})
	}
}

// TestSteps_Closed is K3: when Close has returned nil the znode is gone; when Close could not wait,
// it is gone soon.
func TestSteps_Closed(t *testing.T) {
	for _, mode := range []recipes.CreateOptions{{Ephemeral: true}, {Ephemeral: true, Sequential: true}, {}} {
		for _, wait := range []bool{true, false} {
			if !mode.Ephemeral && !wait {
				continue // same as ephemeral
			}
			t.Run(fmt.Sprintf("%+v %v", mode, wait), func(t *testing.T) {
				recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
					s.Load(map[string]string{"/dir": ""})
					n := persistentnode.New(s.Client, "/dir/n", []byte("1"), mode)
					s.Arm()
					keep(n)
					if wait {
						if _, err := n.Wait(s.Ctx); err != nil && s.Ctx.Err() == nil {
							t.Fatal(err)
						}
					} else {
						time.Sleep(time.Microsecond)
					}
					err := n.Close(s.Ctx)
					if err != nil && s.Ctx.Err() == nil {
						t.Error(err)
					}
					if err == nil && (wait || !mode.Sequential) {
						s.AssertChildren("/dir")
					}
					s.Settle()
					s.AssertChildren("/dir")
				})
			})
		}
	}
}

// TestSteps_Waiting checks that a Znode waits for a name that another session has, changes nothing
// meanwhile, and has the name when the other is gone.
func TestSteps_Waiting(t *testing.T) {
	for _, takeOver := range []bool{false, true} {
		t.Run(fmt.Sprint(takeOver), func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				o := recipes.CreateOptions{Ephemeral: true}
				first := start(t, s.World.Client(), "/n", "1", o)
				second := persistentnode.New(s.Client, "/n", []byte("2"), o)
				if takeOver {
					second.TakeOver()
				}
				s.Arm()
				keep(second)
				time.Sleep(10 * time.Second)
				if !takeOver {
					s.AssertData("/n", "1")
				}
				if err := first.Close(t.Context()); err != nil {
					t.Error(err)
				}
				s.Settle()
				s.AssertData("/n", "2")
				s.AssertOwner("/n", s.Client.Session().ID())
				if err := second.Close(t.Context()); err != nil {
					t.Error(err)
				}
				s.AssertMissing("/n")
			})
		})
	}
}

// TestTroubles is K1 to K4 for several Znodes, two of them with the same path, with faults of an
// ensemble.
func TestTroubles(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		// an ensemble takes ten times as long
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members")
		takeOver := rapid.Bool().Draw(rt, "take over")
		updates := rapid.IntRange(0, 5).Draw(rt, "updates")
		patience := time.Duration(rapid.IntRange(0, 20000).Draw(rt, "patience")) * time.Millisecond
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		before := rapid.IntRange(0, len(troubles)).Draw(rt, "troubles before closing")
		return members, func(t testing.TB, w *recipetest.World) {
			const mine, shared = 1, 2
			w.Load(map[string]string{"/dir": ""})
			var nodes []*persistentnode.Znode
			var clients []*recipes.Client
			var firstSessions []int64 // of each client
			for i := range mine + shared {
				c := w.Client()
				if i == 0 {
					c, _ = w.Hooked() // a wrapped connection
				}
				path := fmt.Sprint("/dir/", i)
				if i >= mine {
					path = "/dir/shared"
				}
				n := persistentnode.New(c, path, fmt.Append(nil, i, " 0"), recipes.CreateOptions{Ephemeral: true})
				if takeOver {
					n.TakeOver()
				}
				keep(n)
				nodes, clients = append(nodes, n), append(clients, c)
				firstSessions = append(firstSessions, c.Session().ID())
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for u := range updates {
					for i, n := range nodes {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						if err := n.SetData(ctx, fmt.Append(nil, i, " ", u+1)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("set: %v", err)
						}
						cancel()
					}
				}
			}()
			w.Apply(troubles[:before])
			<-done
			time.Sleep(2 * recipetest.Timeout)
			owners := map[int64]int{}
			for i, c := range clients {
				owners[c.Session().ID()] = i
			}
			tree := w.Tree("/dir")
			for i := range mine {
				path := fmt.Sprint("/dir/", i)
				w.AssertData(path, fmt.Sprint(i, " ", updates))
				w.AssertOwner(path, clients[i].Session().ID())
			}
			z := w.Znode("/dir/shared")
			if z == nil || len(tree) != mine+2 {
				t.Fatalf("the tree is %q", tree)
			}
			holder := owners[int64(z.Stat.EphemeralOwner)]
			if holder < mine {
				t.Fatalf("the shared znode belongs to %d", holder)
			}
			if string(z.Data) != fmt.Sprint(holder, " ", updates) {
				// Only the exception to K2 explains this: the other's session ended during one of
				// its writes, of whatever data.
				other := mine + mine + shared - 1 - holder
				ended := clients[other].Session().ID() != firstSessions[other]
				if !ended || z.Stat.Version == 0 || !strings.HasPrefix(string(z.Data), fmt.Sprint(other, " ")) {
					t.Errorf("the shared znode has %q and belongs to %d; the other's session ended: %v", z.Data, holder, ended)
				}
			}
			time.Sleep(recipetest.Timeout)
			if again := w.Znode("/dir/shared"); again == nil || int64(again.Stat.Czxid) != int64(z.Stat.Czxid) || int64(again.Stat.Mzxid) != int64(z.Stat.Mzxid) {
				t.Error("the owners of the shared znode replace each other")
			}

			closed := make(chan struct{})
			go func() {
				defer close(closed)
				for i, n := range nodes {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err := n.Close(ctx)
					switch {
					case err == nil && i < mine:
						if _, there := w.Tree("/dir")[fmt.Sprint("/dir/", i)]; there {
							t.Errorf("after Close, znode %d exists", i)
						}
					case err != nil && !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("close: %v", err)
					}
					cancel()
				}
			}()
			w.Apply(troubles[before:])
			<-closed
			time.Sleep(2 * recipetest.Timeout)
			if left := w.Tree("/dir"); len(left) > 1 {
				t.Errorf("still there: %q", left)
			}
		}
	})
}
