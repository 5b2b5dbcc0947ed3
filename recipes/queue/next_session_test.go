package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// sendLate makes the next multi of a client be sent in the session after the intended one, some
// time after that was lost. go-zookeeper does so with requests that are unsent when a session ends.
func sendLate(w *recipetest.World, c *recipes.Client, h *recipetest.Hooks) {
	session := c.Session().ID()
	var once atomic.Bool
	h.Arm(func(r recipetest.Request) error {
		if r.Op == zktest.Multi && once.CompareAndSwap(false, true) {
			w.ExpireSession(session)
			time.Sleep(5 * time.Second)
		}
		return nil
	}, nil)
}

// locked returns a queue with locks and this many items.
func locked(t testing.TB, c *recipes.Client, items int) *queue.Queue {
	t.Helper()
	q := queue.New(c, "/q", queue.Locks("/q-locks"))
	for range items {
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// TestRegress_LockedInTheNextSession sends the multi that locks an item in the next session, after
// another consumer has had the item. Nobody holds that lock, so it must not stay.
func TestRegress_LockedInTheNextSession(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		locked(t, w.Client(), 1)
		c, h := w.Hooked()
		session := c.Session().ID()
		q := locked(t, c, 0)
		sendLate(w, c, h)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i, err := q.TakeLocked(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i.Context().Err() != nil || c.Session().ID() == session {
			t.Errorf("the Context of the item: %v, session %#x", i.Context().Err(), c.Session().ID())
		}
		if err := i.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if i, err = q.TryTakeLocked(t.Context()); err != nil || i == nil {
			t.Fatalf("take: %+v, %v", i, err)
		}
		if err := i.Done(t.Context()); err != nil {
			t.Error(err)
		}
		left(t, w, q)
	})
}

// TestRegress_LockedFromTheQueue is the same for a request that waits in go-zookeeper's send queue.
func TestRegress_LockedFromTheQueue(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		locked(t, w.Client(), 2)
		c := w.Client()
		session := c.Session().ID()
		q := locked(t, c, 0)
		first, err := q.TakeLocked(t.Context()) // lists the queue and reads ahead
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil { // deletes the marker
			t.Fatal(err)
		}
		w.Unplug(c)
		time.Sleep(100 * time.Millisecond) // until the connection notices
		w.ExpireSession(session)
		plugged := time.AfterFunc(300*time.Millisecond, func() { w.Plug(c) })
		defer plugged.Stop()
		i, err := q.TryTakeLocked(t.Context())
		if err != nil || i == nil {
			t.Fatalf("take: %+v, %v", i, err)
		}
		if i.Context().Err() != nil || c.Session().ID() == session {
			t.Errorf("the Context of the item: %v, session %#x", i.Context().Err(), c.Session().ID())
		}
		if err := i.Done(t.Context()); err != nil {
			t.Error(err)
		}
		left(t, w, q)
	})
}

// TestRegress_ReturnedInTheNextSession sends the multi that releases an item in the next session,
// when another consumer has locked the item.
func TestRegress_ReturnedInTheNextSession(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := locked(t, w.Client(), 1)
		c, h := w.Hooked()
		q := locked(t, c, 0)
		first, err := q.TakeLocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sendLate(w, c, h)
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		i, err := other.TakeLocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if i.Context().Err() != nil {
			t.Error(context.Cause(i.Context()))
		}
		if err := i.Done(t.Context()); err != nil {
			t.Error(err)
		}
		left(t, w, q, other)
	})
}

// TestRegress_LockedInUnknownSession lets a wrapped connection have a new session whose event is
// still unread when an item is locked for the previous one.
func TestRegress_LockedInUnknownSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		locked(t, recipetest.Open(t, recipetest.Connect, server.Service, recipetest.Timeout), 2)
		c, next := recipetest.OpenUnaware(t, server.Service)
		q := locked(t, c, 0)
		first, err := q.TakeLocked(t.Context()) // lists the queue and reads ahead
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil { // deletes the marker
			t.Fatal(err)
		}
		next()
		i, err := q.TryTakeLocked(t.Context())
		if err != nil || i == nil {
			t.Fatalf("take: %+v, %v", i, err)
		}
		time.Sleep(5 * time.Second)
		if i.Context().Err() != nil {
			t.Error(context.Cause(i.Context()))
		}
		if err := i.Done(t.Context()); err != nil {
			t.Error(err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		for _, dir := range []string{"/q", "/q-locks"} {
			server.AssertChildren(dir)
		}
	})
}

// left checks that nothing is left of closed queues.
func left(t testing.TB, w *recipetest.World, all ...*queue.Queue) {
	t.Helper()
	for _, q := range all {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(10 * time.Second)
	for _, dir := range []string{"/q", "/q-locks"} {
		w.AssertChildren(dir)
	}
}
