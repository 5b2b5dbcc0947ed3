package agree_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// site votes, unless vote is Undecided, and takes part until it knows the outcome.
func site(ctx context.Context, c *recipes.Client, path, name string, vote agree.Decision) (agree.Decision, error) {
	p, err := agree.NewTransaction(c, path).Join(ctx, name)
	if err != nil {
		return "", err
	}
	if vote != agree.Undecided {
		if err := p.Vote(ctx, vote); err != nil {
			return "", errors.Join(err, p.Close())
		}
	}
	d, err := p.Outcome(ctx)
	if err != nil {
		return "", errors.Join(err, p.Close())
	}
	return d, p.Done(ctx)
}

func TestTransaction(t *testing.T) {
	for _, last := range []agree.Decision{agree.Commit, agree.Abort} {
		t.Run(string(last), func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				ctx := t.Context()
				tx := agree.NewTransaction(w.Client(), "/app/tx")
				c, err := tx.Begin(ctx, []byte("pay"), "a", "b")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Begin(ctx, nil); !errors.Is(err, zk.ErrNodeExists) {
					t.Error(err)
				}
				if _, err := tx.Join(ctx, "x"); !errors.Is(err, recipes.ErrArgument) {
					t.Error(err)
				}
				results := make(chan string, 2)
				for name, vote := range map[string]agree.Decision{"a": agree.Commit, "b": last} {
					client := w.Client()
					// Ends with the outcome; awaited below.
					go func() {
						d, err := site(ctx, client, "/app/tx", name, vote)
						results <- fmt.Sprint(d, err)
					}()
				}
				if _, err := tx.Join(ctx, ""); !errors.Is(err, recipes.ErrArgument) {
					t.Error(err)
				}
				d, err := c.Outcome(ctx)
				if err != nil || d != last {
					t.Error(d, err)
				}
				for range 2 {
					if got := <-results; got != fmt.Sprint(last, nil) {
						t.Error(got)
					}
				}
				if e, err := tx.Explain(ctx); err != nil || e.Decision != last {
					t.Error(e, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if err := tx.Forget(ctx); err != nil {
					t.Error(err)
				}
				w.AssertMissing("/app/tx")
				if _, err := tx.Join(ctx, "a"); !errors.Is(err, zk.ErrNoNode) {
					t.Error(err)
				}
				if _, err := tx.Explain(ctx); !errors.Is(err, zk.ErrNoNode) {
					t.Error(err)
				}
				w.AssertMissing("/app/tx")
			})
		})
	}
}

// TestTransaction_CoordinatorDies checks A3: the next in line continues.
func TestTransaction_CoordinatorDies(t *testing.T) {
	for _, absent := range []bool{false, true} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			ctx := t.Context()
			dying := w.Client()
			if _, err := agree.NewTransaction(dying, "/tx").Begin(ctx, nil, "a", "b"); err != nil {
				t.Fatal(err)
			}
			sites := map[string]agree.Decision{"a": agree.Commit, "b": agree.Commit}
			want := agree.Commit
			if absent {
				delete(sites, "b")
				want = agree.Abort
			}
			var wg sync.WaitGroup
			for name, vote := range sites {
				c := w.Client()
				wg.Go(func() {
					if d, err := site(ctx, c, "/tx", name, vote); err != nil || d != want {
						t.Errorf("%s: %s, %v", name, d, err)
					}
				})
			}
			time.Sleep(time.Second)
			e, err := agree.NewTransaction(w.Client(), "/tx").Explain(ctx)
			if err != nil || e.Decision != agree.Undecided || len(e.Votes) != 2 || e.Votes["a"] != agree.Commit || len(e.Line.Waiters) != len(sites) ||
				len(e.Line.Holders[0].Data) != 0 {
				t.Errorf("%+v, %v", e, err)
			}
			w.Unplug(dying)
			wg.Wait()
			// A late coordinator cleans up.
			c, err := agree.NewTransaction(w.Client(), "/tx").Coordinate(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := c.Outcome(ctx); err != nil || d != want {
				t.Error(d, err)
			}
			if err := errors.Join(c.Close(), c.Forget(ctx)); err != nil {
				t.Error(err)
			}
			w.AssertMissing("/tx")
		})
	}
}

// TestTransaction_SiteDies checks A3: a site that is gone without a vote is not waited for, and one
// that has voted need not return.
func TestTransaction_SiteDies(t *testing.T) {
	for _, voted := range []bool{false, true} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			ctx := t.Context()
			tx := agree.NewTransaction(w.Client(), "/tx")
			c, err := tx.Begin(ctx, nil, "a", "b")
			if err != nil {
				t.Fatal(err)
			}
			dying := w.Client()
			p, err := agree.NewTransaction(dying, "/tx").Join(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			want := agree.Abort
			if voted {
				want = agree.Commit
				if err := errors.Join(p.Vote(ctx, agree.Commit), p.Vote(ctx, agree.Commit)); err != nil {
					t.Error(err)
				}
				if err := p.Vote(ctx, agree.Abort); !errors.Is(err, recipes.ErrArgument) {
					t.Error(err)
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if d, err := c.Outcome(ctx); err != nil || d != want {
					t.Error(d, err)
				}
			})
			time.Sleep(time.Second)
			w.Unplug(dying)
			time.Sleep(20 * time.Second)
			b, err := tx.Join(ctx, "b")
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Vote(ctx, agree.Commit); err != nil {
				t.Error(err)
			}
			if d, err := b.Outcome(ctx); err != nil || d != want {
				t.Error(d, err)
			}
			wg.Wait()
			if err := b.Done(ctx); err != nil {
				t.Error(err)
			}
			forget, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := tx.Forget(forget); (err == nil) == voted {
				t.Error(err)
			}
			if voted { // A4: the site returns and learns the decision
				again, err := tx.Join(ctx, "a")
				if err != nil {
					t.Fatal(err)
				}
				if d, err := again.Outcome(ctx); err != nil || d != want {
					t.Error(d, err)
				}
				if err := errors.Join(again.Done(ctx), c.Close(), tx.Forget(ctx)); err != nil {
					t.Error(err)
				}
			}
			w.AssertMissing("/tx")
		})
	}
}

// TestTransaction_Faults checks A1 to A3 with each fault at each request of a site and of the
// coordinator.
func TestTransaction_Faults(t *testing.T) {
	for _, coordinator := range []bool{true, false} {
		t.Run(fmt.Sprint("coordinator ", coordinator), func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				own, other := s.Client, s.World.Client()
				if !coordinator {
					own, other = other, own
				}
				if coordinator {
					s.Arm()
				}
				of := func(c bool) context.Context { // the other participant continues
					if c == coordinator {
						return s.Ctx
					}
					return t.Context()
				}
				c, err := agree.NewTransaction(own, "/tx").Begin(of(true), nil, "a")
				if err != nil {
					if s.Ctx.Err() == nil && !errors.Is(err, recipes.ErrSessionLost) {
						t.Error(err)
					}
					s.Arm()
					return
				}
				s.Arm()
				outcomes := make(chan agree.Decision, 1)
				// Ends with the outcome; awaited below.
				go func() {
					d, err := site(of(false), other, "/tx", "a", agree.Commit)
					if err != nil && s.Ctx.Err() == nil && !errors.Is(err, recipes.ErrSessionLost) {
						t.Error(err)
					}
					outcomes <- d
				}()
				deadline, cancel := context.WithTimeout(of(true), time.Minute)
				defer cancel()
				d, err := c.Outcome(deadline)
				if err != nil && deadline.Err() != nil { // the site does not come, or the coordinator gives up
					if err = c.Vote(t.Context(), agree.Abort); err == nil {
						d, err = c.Outcome(t.Context())
					}
				}
				if err != nil {
					t.Error(err)
				}
				_ = c.Close()
				if got := <-outcomes; got != agree.Undecided && d != agree.Undecided && got != d {
					t.Errorf("%s and %s", got, d)
				}
				s.Settle()
				s.AssertChildren("/tx/here")
			})
		})
	}
}

// TestTransaction_AllOrNone checks A1 and A2 under random failures: no site commits while another
// aborts, or without the votes of all.
func TestTransaction_AllOrNone(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		votes := rapid.SliceOfN(rapid.SampledFrom([]agree.Decision{agree.Commit, agree.Commit, agree.Commit, agree.Abort}), 3, 3).Draw(rt, "votes")
		deadline := time.Duration(rapid.IntRange(100, 20000).Draw(rt, "deadline")) * time.Millisecond
		return members, func(t testing.TB, w *recipetest.World) {
			const rounds = 3
			var (
				wg       sync.WaitGroup
				mu       sync.Mutex
				outcomes = make(map[string]map[agree.Decision]int)
			)
			note := func(path string, d agree.Decision) {
				mu.Lock()
				defer mu.Unlock()
				if outcomes[path] == nil {
					outcomes[path] = make(map[agree.Decision]int)
				}
				outcomes[path][d]++
			}
			begun := make([]chan string, len(votes))
			for i, vote := range votes {
				begun[i] = make(chan string, rounds)
				c := w.Client()
				wg.Go(func() {
					for path := range begun[i] {
						d, err := site(t.Context(), c, path, fmt.Sprint("s", i), vote)
						for errors.Is(err, recipes.ErrSessionLost) { // as if it had died and restarted
							d, err = site(t.Context(), c, path, fmt.Sprint("s", i), vote)
						}
						switch {
						case errors.Is(err, zk.ErrNoNode), errors.Is(err, recipes.ErrArgument) && d == "":
						case err != nil:
							t.Errorf("%s: %v", path, err)
						default:
							note(path, d)
						}
					}
				})
			}
			first := w.Client()
			wg.Go(func() {
				for r := range rounds {
					tx := agree.NewTransaction(first, fmt.Sprint("/tx", r))
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					c, err := tx.Begin(ctx, nil, "s0", "s1", "s2")
					if err == nil {
						for i := range begun {
							begun[i] <- fmt.Sprint("/tx", r)
						}
						d, err := c.Outcome(ctx)
						if err == nil {
							note(fmt.Sprint("/tx", r), d)
						}
						_ = c.Close()
					}
					cancel()
				}
				for i := range begun {
					close(begun[i])
				}
			})
			w.Apply(troubles)
			wg.Wait()
			for path, o := range outcomes {
				if o[agree.Commit] > 0 && (o[agree.Abort] > 0 || strings.Contains(fmt.Sprint(votes), string(agree.Abort))) || o[agree.Undecided] > 0 {
					t.Errorf("%s: %v with votes %v", path, o, votes)
				}
			}
		}
	})
}

// TestJoin_Lagging joins through a server that does not know the transaction yet.
func TestJoin_Lagging(t *testing.T) {
	recipetest.Run(t, 3, func(t testing.TB, w *recipetest.World) {
		only := func(m *zktest.Member) recipes.Option {
			return recipes.Dialer(func(network, _ string, timeout time.Duration) (net.Conn, error) {
				return w.Dialer()(network, m.Address(), timeout)
			})
		}
		follower := w.Followers()[0]
		site, begins := w.Client(only(follower)), w.Client(only(w.Leader()))
		w.Partition([]int{follower.ID()})
		if _, err := agree.NewTransaction(begins, "/tx").Begin(t.Context(), nil, "a"); err != nil {
			t.Fatal(err)
		}
		joined := make(chan error, 2)
		// These end when the server has caught up; awaited below.
		go func() {
			_, err := agree.NewTransaction(site, "/tx").Join(t.Context(), "a")
			joined <- err
		}()
		go func() {
			_, err := agree.NewTransaction(site, "/tx").Coordinate(t.Context())
			joined <- err
		}()
		time.Sleep(100 * time.Millisecond)
		w.Heal()
		if err := errors.Join(<-joined, <-joined); err != nil {
			t.Error(err)
		}
	})
}
