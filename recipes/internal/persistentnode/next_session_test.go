package persistentnode_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/zktest"
)

// TestRegress_ClosedInTheNextSession closes a Znode without a connection, and lets its session end
// before there is one. Another session then has the name, and Close must not delete its znode.
func TestRegress_ClosedInTheNextSession(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		o := recipes.CreateOptions{Ephemeral: true}
		c := w.Client()
		first, second := start(t, c, "/n", "1", o), persistentnode.New(w.Client(), "/n", []byte("2"), o)
		keep(second)
		// the test has checked all that matters
		defer func() { _ = second.Close(context.Background()) }()
		session := c.Session().ID()
		w.Unplug(c)
		time.Sleep(100 * time.Millisecond) // until the connection notices
		closed := make(chan error, 1)
		// Ends when there is a connection again; awaited below.
		go func() { closed <- first.Close(t.Context()) }()
		time.Sleep(100 * time.Millisecond)
		w.ExpireSession(session)
		if _, err := second.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		made := w.Znode("/n").Stat
		w.Plug(c)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		time.Sleep(recipetest.Timeout)
		z := w.Znode("/n")
		if c.Session().ID() == session || z == nil || int64(z.Stat.Czxid) != int64(made.Czxid) {
			t.Errorf("session %#x, %+v; it was %+v", c.Session().ID(), z, made)
		}
	})
}

// TestRegress_SetWithoutConnection sets data without a connection, and lets the session end before
// there is one. Another session then has the name, and its znode must not be written, although it
// has the same version.
func TestRegress_SetWithoutConnection(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		setInTheNextSession(t, w, c, func(first *persistentnode.Znode) {
			w.Unplug(c)
			time.Sleep(100 * time.Millisecond) // until the connection notices
			first.StartSetData([]byte("late"))
		})
	})
}

// TestRegress_SetRepeated loses the connection while data are written, and then the session. The
// write must not be repeated in the next session, where another session's znode has the name.
func TestRegress_SetRepeated(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		setInTheNextSession(t, w, c, func(first *persistentnode.Znode) {
			h.Arm(func(r recipetest.Request) error {
				if r.Op == zktest.Set && r.N == 1 {
					w.Unplug(c)
					return proto.ErrConnectionLoss
				}
				return nil
			}, nil)
			first.StartSetData([]byte("late"))
		})
	})
}

// setInTheNextSession lets first, of c, have the znode, and then calls set, which starts to set
// data and unplugs c. When the session of c has ended, another session has the znode, and must keep
// it as it created it.
func setInTheNextSession(t testing.TB, w *recipetest.World, c *recipes.Client, set func(first *persistentnode.Znode)) {
	t.Helper()
	o := recipes.CreateOptions{Ephemeral: true}
	first, second := start(t, c, "/n", "1", o), persistentnode.New(w.Client(), "/n", []byte("2"), o)
	keep(second)
	// the test has checked all that matters
	defer func() { _ = second.Close(context.Background()) }()
	session := c.Session().ID()
	set(first)
	time.Sleep(100 * time.Millisecond)
	w.ExpireSession(session)
	if _, err := second.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := w.Znode("/n").Stat
	w.Plug(c)
	time.Sleep(recipetest.Timeout)
	z := w.Znode("/n")
	if c.Session().ID() == session || z == nil || int64(z.Stat.Czxid) != int64(made.Czxid) || int64(z.Stat.Mzxid) != int64(made.Mzxid) {
		t.Errorf("session %#x, %+v; it was %+v", c.Session().ID(), z, made)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := first.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	w.AssertData("/n", "late")
}

// TestRegress_SetDuringTakeOver takes a znode over while its previous owner writes it. The write
// must not change the new owner's znode, whatever versions the two have.
func TestRegress_SetDuringTakeOver(t *testing.T) {
	for _, writes := range []struct{ first, second int }{{0, 0}, {1, 1}, {3, 3}, {20, 20}, {21, 0}, {21, 19}} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			o := recipes.CreateOptions{Ephemeral: true}
			c, h := w.Hooked()
			first, second := start(t, c, "/n", "1", o, true), persistentnode.New(w.Client(), "/n", []byte("2"), o).TakeOver()
			// the test has checked all that matters
			defer func() { _ = second.Close(context.Background()) }()
			for range writes.first {
				if err := first.SetData(t.Context(), []byte("1")); err != nil {
					t.Fatal(err)
				}
			}
			sent := make(chan struct{})
			h.Arm(func(r recipetest.Request) error {
				if r.Op != zktest.Set {
					return nil
				}
				keep(second)
				if _, err := second.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				for range writes.second {
					if err := second.SetData(t.Context(), []byte("2")); err != nil {
						t.Error(err)
					}
				}
				close(sent)
				return nil
			}, nil)
			first.StartSetData([]byte("late"))
			<-sent
			time.Sleep(time.Second)
			w.AssertData("/n", "2")
			if _, err := first.Path(); !errors.Is(err, recipes.ErrTaken) {
				t.Errorf("%v, want taken", err)
			}
		})
	}
}
