package agree_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
)

func TestRendezvous(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		hosting := w.Client()
		var wg sync.WaitGroup
		wg.Go(func() { // is first, and waits
			m, err := agree.NewRendezvous(w.Client(), "/r").Visit(ctx)
			if err != nil || m.Held != nil || string(m.Address) != "a:1" {
				t.Error(m, err)
				return
			}
			<-m.Context().Done()
			if !errors.Is(context.Cause(m.Context()), recipes.ErrNotHeld) {
				t.Error(context.Cause(m.Context()))
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		host, err := agree.NewRendezvous(hosting, "/r").Meet(ctx, []byte("a:1"))
		if err != nil || host.Held == nil || string(host.Address) != "a:1" {
			t.Fatal(host, err)
		}
		guest, err := agree.NewRendezvous(w.Client(), "/r").Meet(ctx, []byte("b:2"))
		if err != nil || guest.Held != nil || string(guest.Address) != "a:1" {
			t.Fatal(guest, err)
		}
		l, err := agree.NewRendezvous(w.Client(), "/r").Explain(ctx)
		if err != nil || len(l.Holders) != 1 || string(l.Holders[0].Data) != "a:1" || l.Holders[0].Session != hosting.Session().ID() {
			t.Errorf("%+v, %v", l, err)
		}
		w.Unplug(hosting)
		<-guest.Context().Done()
		wg.Wait()
		if host.Context().Err() == nil {
			t.Error("the host does not know that it is none")
		}
		if err := guest.Close(); err != nil {
			t.Error(err)
		}
		next, err := agree.NewRendezvous(w.Client(), "/r").Meet(ctx, []byte("b:2"))
		if err != nil || next.Held == nil {
			t.Fatal(next, err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/r")
		over, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := agree.NewRendezvous(w.Client(), "/r").Visit(over); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Whatever happens, a participant is the host or knows the host, and leaves no znode behind.
func TestRendezvous_Faults(t *testing.T) {
	for _, first := range []bool{true, false} {
		recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
			if !first {
				if _, err := agree.NewRendezvous(s.World.Client(), "/r").Meet(t.Context(), []byte("a:1")); err != nil {
					t.Fatal(err)
				}
			}
			s.Arm()
			m, err := agree.NewRendezvous(s.Client, "/r").Meet(s.Ctx, []byte("b:2"))
			switch {
			case err != nil:
				if s.Ctx.Err() == nil {
					t.Error(err)
				}
			case (m.Held != nil) != first || (string(m.Address) == "b:2") != first:
				t.Errorf("%q", m.Address)
			default:
				_ = m.Close() // continues in the background
			}
			s.Settle()
			want := 1
			if !first {
				want = 2
			}
			if got := len(s.Tree("/")); got > want+4 { // including /, /zookeeper and its children
				t.Errorf("%q", s.Tree("/"))
			}
			for path := range s.Tree("/") {
				if first && len(path) > len("/r/") && path[:3] == "/r/" {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}
