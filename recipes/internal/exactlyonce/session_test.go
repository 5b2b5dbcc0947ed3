package exactlyonce_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/zktest"
)

// TestDo_SessionGone loses the answer and then the session, so that the marker is deleted before
// the Writer can look. The missing marker then proves nothing.
func TestDo_SessionGone(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c, h := w.Hooked()
		session := c.Session().ID()
		o := exactlyonce.New(c, "/dir")
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Multi && r.N == 1:
				w.DropReply(zktest.Multi)
			case r.Op == zktest.Sync && r.N == 2: // the Sync after the write is for the marker
				w.ExpireSession(session)
			}
			return nil
		}, nil)
		if _, err := o.Do(t.Context(), append1("item-")); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		if items, _ := written(w, "item-"); items != 1 {
			t.Errorf("%d items", items)
		}
		closed(t, w, o)
	})
}

// TestRegress_SentInTheNextSession ends the session while the write waits to be sent. A write that
// is sent in the next session must not create the marker after the Writer has given the marker up.
func TestRegress_SentInTheNextSession(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c := w.Client()
		session := c.Session().ID()
		o := exactlyonce.New(c, "/dir")
		w.Unplug(c)
		time.Sleep(100 * time.Millisecond) // until the connection notices
		w.ExpireSession(session)
		done := make(chan error, 1)
		// Ends when there is a connection again; awaited below.
		go func() {
			_, err := o.Do(t.Context(), append1("item-"))
			done <- err
		}()
		time.Sleep(300 * time.Millisecond) // without a server the request is queued again and again
		w.Plug(c)
		err := <-done
		if err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if items, _ := written(w, "item-"); items > 1 || err == nil && items == 0 || c.Session().ID() == session {
			t.Errorf("%d items, session %#x", items, c.Session().ID())
		}
		closed(t, w, o)
	})
}

// closed is O4.
func closed(t testing.TB, w *recipetest.World, o *exactlyonce.Writer) {
	t.Helper()
	if err := o.Close(t.Context()); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Second)
	if _, markers := written(w, ""); markers != 0 {
		t.Errorf("%d markers", markers)
	}
}

// TestRegress_SentAfterItsMarkerWasDeleted delays the write until its session has ended and the
// deletion of its marker has been tried. A wrapped connection sends the write in the next session;
// a Client of Connect never sends it.
func TestRegress_SentAfterItsMarkerWasDeleted(t *testing.T) {
	for kind, want := range map[recipetest.Kind]int{recipetest.Connect: 0, recipetest.Wrap: 1} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/dir": ""})
			c, h := w.OpenHooked(kind)
			session := c.Session().ID()
			o := exactlyonce.New(c, "/dir")
			h.Arm(func(r recipetest.Request) error {
				if r.Op == zktest.Multi && r.N == 1 {
					w.ExpireSession(session)
					time.Sleep(5 * time.Second)
				}
				return nil
			}, nil)
			if _, err := o.Do(t.Context(), append1("item-")); !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			if items, _ := written(w, "item-"); items != want || c.Session().ID() == session {
				t.Errorf("%s: %d items, session %#x", kind, items, c.Session().ID())
			}
			closed(t, w, o)
		})
	}
}
