package agree_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
)

const quiet = time.Second

var parts = []string{"p0", "p1", "p2", "p3", "p4"}

func TestPartitioner(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		a, err := agree.NewPartitioner(w.Client(), "/p", parts, "anna", quiet).Join(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all, err := a.Acquire(ctx)
		if err != nil || !slices.Equal(all.Parts, parts) || all.Held("p3").Token() == 0 || all.Held("x") != nil {
			t.Fatalf("%+v, %v", all, err)
		}
		b, err := agree.NewPartitioner(w.Client(), "/p", parts, "bert", quiet).Join(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-all.Changed()
		if all.Context().Err() != nil {
			t.Error("the share is lost")
		}
		shares := make(chan []string, 1)
		// Ends with its share; awaited below.
		go func() {
			s, err := b.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			shares <- s.Parts
		}()
		time.Sleep(time.Minute)
		present, held, err := agree.NewPartitioner(w.Client(), "/p", parts, "", quiet).Explain(ctx)
		if err != nil || len(present["anna"]) != 1 || len(present["bert"]) != 1 || len(held) != 5 || string(held["p1"].Holders[0].Data) != "anna" ||
			len(held["p1"].Waiters) != 1 {
			t.Errorf("%+v, %+v, %v", present, held, err)
		}
		if err := all.Release(ctx); err != nil {
			t.Error(err)
		}
		half, err := a.Acquire(ctx)
		if err != nil || !slices.Equal(half.Parts, []string{"p0", "p2", "p4"}) {
			t.Errorf("%+v, %v", half, err)
		}
		if got := <-shares; !slices.Equal(got, []string{"p1", "p3"}) {
			t.Error(got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		<-half.Changed()
		if err := a.Close(); err != nil || a.Context().Err() == nil || half.Context().Err() == nil {
			t.Error(err)
		}
		w.AssertChildren("/p/party")
		for path := range w.Tree("/p/locks") {
			if strings.Contains(path, "__lock__") {
				t.Errorf("%s is left", path)
			}
		}
		for _, bad := range [][]string{{"a/b"}, {""}, {"a", "a"}} {
			if _, err := agree.NewPartitioner(w.Client(), "/p", bad, "x", quiet).Join(ctx); !errors.Is(err, recipes.ErrArgument) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

// The names are those of kazoo's sources.
func TestPartitioner_Layout(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		// A kazoo member is present, and its place in line has an earlier number.
		w.Load(map[string]string{"/p/party/0123456789abcdef0123456789abcdef-a-kazoo": "", "/p/locks/p1": ""})
		m, err := agree.NewPartitioner(w.Client(), "/p", parts, "go", quiet).Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Acquire(t.Context())
		if err != nil || !slices.Equal(s.Parts, []string{"p1", "p3"}) {
			t.Fatal(s.Parts, err)
		}
		for path := range w.Tree("/p") {
			fields := strings.Split(path, "/")
			switch {
			case len(fields) == 4 && fields[2] == "party":
				if hex, id, _ := strings.Cut(fields[3], "-"); len(hex) != 32 || id != "go" && id != "a-kazoo" {
					t.Error(path)
				}
			case len(fields) == 5:
				if !strings.HasSuffix(fields[4], "__lock__0000000000") {
					t.Error(path)
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPartitioner_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Arm()
		ended := errors.New("ended")
		err := agree.NewPartitioner(s.Client, "/p", parts[:2], "anna", quiet).Run(s.Ctx, func(ctx context.Context, got []string) error {
			if len(got) != 2 {
				t.Error(got)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Second):
				return ended
			}
		})
		if !errors.Is(err, ended) && s.Ctx.Err() == nil {
			t.Error(err)
		}
		s.Settle()
		for path := range s.Tree("/") {
			if strings.Contains(path, "__lock__") || strings.HasPrefix(path, "/p/party/") {
				t.Errorf("%s is left", path)
			}
		}
	})
}

// TestPartitioner_Disjoint checks A6 and A7 under random failures.
func TestPartitioner_Disjoint(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		slow := time.Duration(rapid.IntRange(0, 3000).Draw(rt, "slow")) * time.Millisecond
		return members, func(t testing.TB, w *recipetest.World) {
			var (
				wg    sync.WaitGroup
				mu    sync.Mutex
				now   = make(map[int][]string)
				holds = make(map[string]*recipetest.HoldHistory)
			)
			for _, part := range parts {
				holds[part] = recipetest.NewHoldHistory(1)
			}
			// A client whose session is ended by force cannot know that in time.
			forced := slices.ContainsFunc(troubles, func(x recipetest.Trouble) bool { return x.What == "expire" })
			ctx, stop := context.WithCancel(t.Context())
			work := func(ctx context.Context, i int, share *agree.Share) {
				mu.Lock()
				now[i] = share.Parts
				mu.Unlock()
				var all []*recipetest.HoldRecord
				for _, part := range share.Parts {
					all = append(all, holds[part].Begin(share.Context(), share.Held(part).Token(), 1))
				}
				select {
				case <-share.Changed():
					time.Sleep(slow)
				case <-share.Context().Done():
				case <-ctx.Done():
				}
				mu.Lock()
				delete(now, i)
				mu.Unlock()
				for _, h := range all {
					h.End()
				}
			}
			for i := range 3 {
				p := agree.NewPartitioner(w.Client(), "/p", parts, fmt.Sprint("m", i), quiet)
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 2 * time.Second)
					for ctx.Err() == nil {
						m, err := p.Join(ctx)
						for err == nil {
							var share *agree.Share
							if share, err = m.Acquire(ctx); err != nil {
								break
							}
							work(ctx, i, share)
							if err := share.Release(t.Context()); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
								t.Error(err)
							}
						}
						if ctx.Err() == nil && !errors.Is(err, recipes.ErrSessionLost) {
							t.Error(err)
						}
						if m != nil {
							if err := m.Close(); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, context.DeadlineExceeded) {
								t.Error(err)
							}
						}
					}
				})
			}
			w.Apply(troubles)
			time.Sleep(30 * time.Second)
			mu.Lock()
			var got []string
			for _, s := range now {
				got = append(got, s...)
			}
			if slices.Sort(got); !slices.Equal(got, parts) {
				t.Errorf("%q in %d shares", got, len(slices.Collect(maps.Keys(now))))
			}
			mu.Unlock()
			for part, h := range holds {
				if err := h.Err(); err != nil && !forced {
					t.Errorf("%s: %v", part, err)
				}
			}
			stop()
			wg.Wait()
			time.Sleep(15 * time.Second)
			for path := range w.Tree("/p") {
				if strings.Contains(path, "__lock__") || strings.HasPrefix(path, "/p/party/") {
					t.Errorf("%s is left", path)
				}
			}
		}
	})
}

// Run returns the error of f also if that wraps the loss of something that f had.
func TestPartitioner_RunOtherLoss(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, calls := w.Client(), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := agree.NewPartitioner(c, "/p", []string{"a"}, "x", time.Second).Run(ctx, func(ctx context.Context, _ []string) error {
			calls++
			return fmt.Errorf("f's lease: %w", recipes.ErrNotHeld)
		})
		if calls != 1 || !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("after %d calls: %v", calls, err)
		}
	})
}
