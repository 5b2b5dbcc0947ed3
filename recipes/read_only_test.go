package recipes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// withReadOnly runs f with three servers that become read-only when they lose the quorum.
func withReadOnly(t *testing.T, f func(t *testing.T, e *zktest.Ensemble, c *recipes.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3, zktest.WithConfig(func(_ int, c *server.Config) { c.ReadOnlyMode = true }))
		f(t, e, openReadOnly(t, e))
	})
}

func openReadOnly(t *testing.T, e *zktest.Ensemble) *recipes.Client {
	t.Helper()
	return recipetest.Open(t, recipetest.Connect, e.Service, recipetest.Timeout, recipes.AcceptReadOnly(), recipes.Retry(recipes.Times(2, time.Second)))
}

// awaitStates reads states until the last of want, and checks that they are want.
func awaitStates(t *testing.T, states <-chan recipes.ConnState, want ...recipes.ConnState) {
	t.Helper()
	var got []recipes.ConnState
	late := time.After(5 * time.Minute)
	for len(got) < len(want) {
		select {
		case s := <-states:
			got = append(got, s)
		case <-late:
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func cannotWrite(t *testing.T, c *recipes.Client) {
	t.Helper()
	var e *recipes.Error
	_, err := c.Create(t.Context(), "/no", nil, recipes.CreateOptions{})
	if !errors.Is(err, proto.ErrNotReadOnly) || !errors.As(err, &e) || e.Unknown || recipes.Refused(err) {
		t.Errorf("create: %v", err)
	}
	if err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrNotReadOnly) {
		t.Errorf("sync: %v", err)
	}
}

// TestReadOnly follows a Client and its recipes while its ensemble loses the quorum and gets it
// back.
func TestReadOnly(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *zktest.Ensemble, c *recipes.Client) {
		if _, err := c.Create(t.Context(), "/a", []byte("1"), recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		states := c.States(ctx)
		latch, tree := election.NewLatch(c, "/leader", "x"), cache.NewTree(c, "/a", cache.TreeOptions{})
		for _, r := range []runner{latch, tree} {
			if err := r.Start(ctx); err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		held, err := latch.Await(ctx)
		if err != nil || tree.Wait(ctx) != nil {
			t.Fatal(err)
		}
		lost := c.Session()
		for _, m := range e.Followers() {
			m.Kill()
		}
		awaitStates(t, states, recipes.Connected, recipes.Suspended, recipes.Lost, recipes.ReadOnly)
		if c.State() != recipes.ReadOnly || c.Session() != lost || lost.Context().Err() == nil || held.Context().Err() == nil || latch.Leadership() != nil {
			t.Errorf("state %v, session lost %v, held %v", c.State(), lost.Context().Err(), held.Context().Err())
		}
		data, _, fires, err := c.GetW(ctx, "/a")
		if err != nil || string(data) != "1" {
			t.Fatalf("get: %q, %v", data, err)
		}
		cannotWrite(t, c)
		if z := tree.Get("/a"); z == nil || string(z.Data) != "1" || tree.Complete() {
			t.Errorf("the cache has %v and complete is %v", z, tree.Complete())
		}
		time.Sleep(time.Minute)
		if c.State() != recipes.ReadOnly || len(fires) > 0 {
			t.Errorf("state %v, %d events", c.State(), len(fires))
		}
		for _, m := range e.Members() {
			if m.State() != zktest.Running {
				m.Start()
			}
		}
		awaitStates(t, states, recipes.Lost, recipes.Reconnected)
		<-fires
		if held, err = latch.Await(ctx); err != nil || held.Session() == lost {
			t.Errorf("%v", err)
		}
		if err := tree.Wait(ctx); err != nil {
			t.Error(err)
		}
		if _, err := c.Set(ctx, "/a", []byte("2"), 0); err != nil {
			t.Error(err)
		}
	})
}

// TestReadOnly_PersistentZnode keeps a znode that does not end with a session. In read-only mode
// the znode must not be read again and again.
func TestReadOnly_PersistentZnode(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *zktest.Ensemble, c *recipes.Client) {
		states := c.States(t.Context())
		z := group.NewPersistentZnode(c, "/z", []byte("1"), recipes.CreateOptions{})
		if err := z.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := z.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range e.Followers() {
			m.Kill()
		}
		awaitStates(t, states, recipes.Connected, recipes.Suspended, recipes.Lost, recipes.ReadOnly)
		time.Sleep(time.Minute) // without an end if the znode is read without a pause
		for _, m := range e.Members() {
			if m.State() != zktest.Running {
				m.Start()
			}
		}
		awaitStates(t, states, recipes.Lost, recipes.Reconnected)
		if err := z.SetData(t.Context(), []byte("2")); err != nil {
			t.Error(err)
		}
		if data, _, err := c.Get(t.Context(), "/z"); err != nil || string(data) != "2" {
			t.Errorf("%q, %v", data, err)
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestReadOnly_First connects while no server has a quorum, and closes a Client that reads.
func TestReadOnly_First(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *zktest.Ensemble, c *recipes.Client) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		left := e.Followers()
		for _, m := range left {
			m.Kill()
		}
		time.Sleep(time.Minute)
		first, closed := openReadOnly(t, e), openReadOnly(t, e)
		if first.State() != recipes.ReadOnly || first.Session().ID() != 0 || !errors.Is(context.Cause(first.Session().Context()), recipes.ErrSessionLost) {
			t.Errorf("state %v, session %#x", first.State(), first.Session().ID())
		}
		if stat, err := first.Exists(t.Context(), "/zookeeper"); err != nil || stat == nil {
			t.Errorf("exists: %v, %v", stat, err)
		}
		cannotWrite(t, first)
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s, err := first.AwaitSession(soon); err == nil {
			t.Errorf("a session %#x", s.ID())
		}
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
		if _, err := closed.Exists(t.Context(), "/"); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("exists after Close: %v", err)
		}
		for _, m := range left {
			m.Start()
		}
		if _, err := first.AwaitSession(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := first.Create(t.Context(), "/b", nil, recipes.CreateOptions{Ephemeral: true}); err != nil || first.State() != recipes.Reconnected {
			t.Errorf("state %v, create: %v", first.State(), err)
		}
	})
}

// TestReadOnly_Behind checks that a Client does not read from a server that has not seen all that
// the Client has seen.
func TestReadOnly_Behind(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *zktest.Ensemble, c *recipes.Client) {
		behind := e.Followers()[0]
		if e.MemberOf(sessionID(c.Session().ID())).ID() == behind.ID() {
			behind = e.Followers()[1]
		}
		e.Partition([]int{behind.ID()})
		if _, err := c.Create(t.Context(), "/a", nil, recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, m := range e.Members() {
			if m.ID() != behind.ID() {
				m.Kill()
			}
		}
		time.Sleep(time.Minute)
		if _, err := c.Exists(t.Context(), "/a"); err == nil || c.State() != recipes.Lost {
			t.Errorf("state %v, exists: %v", c.State(), err)
		}
		if other := openReadOnly(t, e); other.State() != recipes.ReadOnly {
			t.Errorf("a new Client has state %v", other.State())
		}
	})
}
