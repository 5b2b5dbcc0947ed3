package contend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

func open(t *testing.T, s *zktest.Service) *recipes.Client {
	t.Helper()
	c, err := recipes.Connect(t.Context(), strings.Split(s.ConnectString(), ","), recipes.Dialer(s.Dialer()), recipes.Retry(recipes.Forever(50*time.Millisecond)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestAcquire_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := open(t, s.Service)
		first, err := contend.Acquire(t.Context(), c, "/a/line", "lock-", []byte("first"), contend.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := contend.TryAcquire(t.Context(), c, "/a/line", "lock-", nil, contend.Exclusive); held != nil || err != nil {
			t.Errorf("%v, %v", held, err)
		}
		var wg sync.WaitGroup
		var order []int
		for i := range 5 {
			wg.Go(func() {
				h, err := contend.Acquire(t.Context(), c, "/a/line", "lock-", fmt.Append(nil, i), contend.Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				time.Sleep(time.Second)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		// A contender that gives up is skipped, and one whose znode somebody deletes goes to the
		// end.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := contend.Acquire(ctx, c, "/a/line", "lock-", nil, contend.Exclusive); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		all, err := contend.Contenders(t.Context(), c, "/a/line", sequence.Sequential)
		if err != nil || len(all) != 6 || string(all[0].Data) != "first" || string(all[2].Data) != "1" || all[2].Session != c.Session().ID() {
			t.Fatalf("%+v, %v", all, err)
		}
		if err := c.Delete(t.Context(), all[2].Path, -1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if got := fmt.Sprint(order); got != "[0 2 3 4 1]" {
			t.Error(got)
		}
		s.AssertChildren("/a/line")
	})
}

// TestAcquire_NoDirectory deletes the whole directory while Acquire waits. Acquire must not give
// up.
func TestAcquire_NoDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := open(t, s.Service)
		first, err := contend.Acquire(t.Context(), c, "/line", "lock-", nil, contend.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { // ends when the directory is gone; awaited below
			held, err := contend.Acquire(t.Context(), c, "/line", "lock-", nil, contend.Exclusive)
			if err == nil {
				if s.AssertExists(held.Path()); held.Token() <= first.Token() {
					t.Errorf("token %d after %d", held.Token(), first.Token())
				}
			}
			done <- err
		}()
		time.Sleep(time.Second)
		ops := []client.Op{client.DeleteOp(first.Path(), -1)}
		names, _, err := c.Children(t.Context(), "/line")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if path := "/line/" + name; path != first.Path() {
				ops = append(ops, client.DeleteOp(path, -1))
			}
		}
		if _, err := c.Multi(t.Context(), append(ops, client.DeleteOp("/line", -1))...); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestContenders: of contenders that may not be read the paths are known, and any other error is
// that of the call.
func TestContenders(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.OpenHooked(recipetest.Connect)
		for i, acl := range [][]proto.ACL{proto.OpenACL(), {{Perms: proto.PermDelete, ID: proto.ID{Scheme: "world", ID: "anyone"}}}} {
			for _, name := range []string{"a", "b"} {
				o := recipes.CreateOptions{Sequential: true, Parents: true, ACL: acl}
				if _, err := c.Create(t.Context(), "/line/"+name+"-", fmt.Append(nil, i), o); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, tc := range []struct {
			choose func([]string) []string
			want   string
		}{
			{sequence.Sequential, "a-0000000000 0, b-0000000001 0, a-0000000002 , b-0000000003 "},
			{func(names []string) []string {
				return slices.DeleteFunc(sequence.Sequential(names), func(name string) bool { return name[0] != 'b' })
			}, "b-0000000001 0, b-0000000003 "},
		} {
			all, err := contend.Contenders(t.Context(), c, "/line", tc.choose)
			var got []string
			for _, x := range all {
				got = append(got, strings.TrimPrefix(x.Path, "/line/")+" "+string(x.Data))
				if x.Since.IsZero() != (len(x.Data) == 0) {
					t.Errorf("%+v", x)
				}
			}
			if err != nil || strings.Join(got, ", ") != tc.want {
				t.Errorf("%q, want %s; %v", got, tc.want, err)
			}
		}
		refused := errors.New("refused")
		for _, op := range []string{"get", "children"} {
			h.Arm(func(r recipetest.Request) error {
				if string(r.Op) == op {
					return refused
				}
				return nil
			}, nil)
			if all, err := contend.Contenders(t.Context(), c, "/line", sequence.Sequential); !errors.Is(err, refused) || all != nil {
				t.Errorf("%s is refused: %v, %v", op, all, err)
			}
		}
	})
}

// TestExclusive is L1, L2 and L4 with faults: no two turns are alive at once, their tokens rise,
// and nothing is left. If somebody deletes a holder's znode or session, which the holder cannot
// foresee, two turns may overlap, but tokens still rise.
func TestExclusive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		members := rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
		troubles := rapid.SliceOfN(rapid.SampledFrom([]string{"expire", "drop", "disconnect", "kill", "delete", "leader", "partition"}), 0, 12).Draw(rt, "troubles")
		pause := time.Duration(rapid.IntRange(1, 5000).Draw(rt, "pause")) * time.Millisecond
		synctest.Test(t, func(t *testing.T) { exclusive(t, members, troubles, pause) })
		if t.Failed() {
			rt.Fatalf("failed")
		}
	})
}

func exclusive(t *testing.T, members int, troubles []string, pause time.Duration) {
	e := zktest.StartEnsemble(t, members)
	ctx, stop := context.WithCancel(t.Context())
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		alive   *recipes.Hold
		token   int64
		turns   int
		clients []*recipes.Client
	)
	forced := slices.Contains(troubles, "expire") || slices.Contains(troubles, "delete")
	for range 4 {
		c := open(t, e.Service)
		clients = append(clients, c)
		wg.Go(func() {
			for ctx.Err() == nil {
				within, cancel := context.WithTimeout(ctx, 7*time.Second)
				mu.Lock()
				before := token
				mu.Unlock()
				h, err := contend.Acquire(within, c, "/line", "lock-", nil, contend.Exclusive)
				cancel()
				if err != nil {
					if within.Err() == nil {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				if h.Context().Err() == nil {
					if alive != nil && !forced && alive.Context().Err() == nil {
						t.Errorf("two turns at once: %s and %s", alive.Path(), h.Path())
					}
					if !forced { // otherwise a turn that was taken away may be noted after the next one
						before = token
					}
					if h.Token() <= before {
						t.Errorf("token %d is not greater than %d", h.Token(), before)
					}
					alive, token = h, max(token, h.Token())
					turns++
				}
				mu.Unlock()
				select {
				case <-h.Context().Done():
				case <-time.After(300 * time.Millisecond):
				}
				_ = h.Release(t.Context()) // continues in the background
			}
		})
	}
	for i, what := range troubles {
		time.Sleep(pause)
		m := e.Member(1 + i%members)
		switch what {
		case "expire":
			err := e.Leader().Server().ExpireSession(t.Context(), clients[i%4].Session().ID())
			if err != nil && !errors.Is(err, server.ErrNoSession) {
				t.Error(err)
			}
		case "drop":
			e.DropReply(zktest.Any)
		case "disconnect":
			m.Disconnect()
		case "kill":
			m.Kill()
			time.Sleep(pause)
			m.Start()
		case "leader":
			l := e.Leader()
			l.Kill()
			time.Sleep(pause)
			l.Start()
		case "partition":
			m.Partition()
			time.Sleep(2 * pause)
			m.Heal()
		case "delete":
			for path := range e.Tree("/") {
				if strings.HasPrefix(path, "/line/") {
					if err := clients[i%4].Delete(t.Context(), path, -1); err != nil && !errors.Is(err, proto.ErrNoNode) {
						t.Error(err)
					}
				}
			}
		}
	}
	time.Sleep(5 * time.Second)
	stop()
	wg.Wait()
	time.Sleep(time.Minute)
	e.ClearFaults()
	if turns == 0 {
		t.Error("nobody had a turn")
	}
	for path := range e.Tree("/") {
		if strings.HasPrefix(path, "/line/") {
			t.Errorf("%s still exists", path)
		}
	}
}

// TestAwait_SharesReadings: contenders of one Client that look at the line at once look together.
func TestAwait_SharesReadings(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.OpenHooked(recipetest.Connect)
		first, err := contend.Acquire(t.Context(), c, "/line", "lock-", nil, contend.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		const waiters = 200
		h.Arm(nil, nil)
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				held, err := contend.Acquire(t.Context(), c, "/line", "lock-", nil, contend.Exclusive)
				if err == nil {
					err = held.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		readings := 0
		for _, r := range h.Requests() {
			if r.Op == "children" {
				readings++
			}
		}
		if readings > waiters/4 {
			t.Errorf("%d contenders read the line %d times", waiters, readings)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}
