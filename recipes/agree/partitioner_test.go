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
	"github.com/gozkd/gozkd/recipes/lock"
)

const quiet = time.Second

var parts = []string{"p0", "p1", "p2", "p3", "p4"}

// round is a call of the function of Run, which returns when release is closed.
type round struct {
	ctx     context.Context
	held    map[string]*recipes.Hold
	release chan struct{}
	done    <-chan error // of Run
}

func (r round) parts() []string { return slices.Sorted(maps.Keys(r.held)) }

// leave ends Run while the ctx of the round is alive, and waits.
func (r round) leave() error {
	close(r.release)
	return <-r.done
}

// run calls Run and returns its rounds. leave ends the ctx of Run and waits.
func run(ctx context.Context, p *agree.Partitioner) (rounds <-chan round, leave func() error) {
	ctx, stop := context.WithCancel(ctx)
	calls, done := make(chan round), make(chan error, 1)
	// Ends with leave, which waits.
	go func() {
		done <- p.Run(ctx, func(in context.Context, held map[string]*recipes.Hold) error {
			r := round{in, held, make(chan struct{}), done}
			select {
			case calls <- r:
			case <-ctx.Done():
				return nil
			}
			select {
			case <-r.release:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	return calls, func() error {
		stop()
		return <-done
	}
}

func TestPartitioner(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		a, _ := run(ctx, agree.NewPartitioner(w.Client(), "/p", parts, "anna", quiet))
		all := <-a
		if !slices.Equal(all.parts(), parts) || all.held["p3"].Token() == 0 {
			t.Fatalf("%+v", all)
		}
		b, _ := run(ctx, agree.NewPartitioner(w.Client(), "/p", parts, "bert", quiet))
		<-all.ctx.Done()
		if all.held["p0"].Context().Err() != nil {
			t.Error("the part is lost")
		}
		time.Sleep(time.Minute)
		line, err := lock.Explain(ctx, w.Client(), "/p/locks/p1")
		if err != nil || len(line.Holders) != 1 || string(line.Holders[0].Data) != "anna" || len(line.Waiters) != 1 || len(w.Tree("/p/party")) != 3 {
			t.Errorf("%+v, %v, %q", line, err, w.Tree("/p/party"))
		}
		close(all.release)
		half, rest := <-a, <-b
		if !slices.Equal(half.parts(), []string{"p0", "p2", "p4"}) || !slices.Equal(rest.parts(), []string{"p1", "p3"}) {
			t.Errorf("%+v, %+v", half, rest)
		}
		if err := rest.leave(); err != nil {
			t.Error(err)
		}
		<-half.ctx.Done()
		close(half.release)
		all = <-a
		if err := all.leave(); err != nil || half.held["p0"].Context().Err() == nil || all.held["p0"].Context().Err() == nil {
			t.Error(err)
		}
		w.AssertChildren("/p/party")
		for path := range w.Tree("/p/locks") {
			if strings.Contains(path, "__lock__") {
				t.Errorf("%s is left", path)
			}
		}
		for _, bad := range [][]string{{"a/b"}, {""}, {"a", "a"}} {
			if err := agree.NewPartitioner(w.Client(), "/p", bad, "x", quiet).Run(ctx, nil); !errors.Is(err, recipes.ErrArgument) {
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
		rounds, leave := run(t.Context(), agree.NewPartitioner(w.Client(), "/p", parts, "go", quiet))
		if s := <-rounds; !slices.Equal(s.parts(), []string{"p1", "p3"}) {
			t.Fatal(s.parts())
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
		if err := leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestPartitioner_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Arm()
		ended := errors.New("ended")
		err := agree.NewPartitioner(s.Client, "/p", parts[:2], "anna", quiet).Run(s.Ctx, func(ctx context.Context, got map[string]*recipes.Hold) error {
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

// TestPartitioner_Disjoint checks A1 and A2 under random failures.
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
			work := func(in context.Context, i int, held map[string]*recipes.Hold) {
				mu.Lock()
				now[i] = slices.Collect(maps.Keys(held))
				mu.Unlock()
				var all []*recipetest.HoldRecord
				for part, h := range held {
					all = append(all, holds[part].Begin(h.Context(), h.Token(), 1))
				}
				<-in.Done()
				if ctx.Err() == nil {
					time.Sleep(slow)
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
						err := p.Run(ctx, func(ctx context.Context, held map[string]*recipes.Hold) error {
							work(ctx, i, held)
							return nil
						})
						if ctx.Err() == nil {
							t.Error(err)
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

// The locks are released although f has emptied its map.
func TestPartitioner_ModifiedParts(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		err := agree.NewPartitioner(w.Client(), "/p", []string{"a"}, "x", quiet).Run(t.Context(), func(_ context.Context, held map[string]*recipes.Hold) error {
			clear(held)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		w.AssertChildren("/p/locks/a")
	})
}

// Run returns the error of f also if that wraps the loss of something that f had.
func TestPartitioner_RunOtherLoss(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, calls := w.Client(), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := agree.NewPartitioner(c, "/p", []string{"a"}, "x", time.Second).Run(ctx, func(ctx context.Context, _ map[string]*recipes.Hold) error {
			calls++
			return fmt.Errorf("f's lease: %w", recipes.ErrNotHeld)
		})
		if calls != 1 || !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("after %d calls: %v", calls, err)
		}
	})
}
