package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// operation is an operation of a Client, on a server that has /dir, and /dir/z with the data "old".
type operation struct {
	name  string
	fault zktest.Op
	do    func(ctx context.Context, c *recipes.Client) error
	// children is the number of children of /dir after the operation was done once; data and
	// version are those of /dir/z.
	children int
	data     string
	version  int32
	// once is set if the operation's outcome cannot be known after a lost answer.
	once bool
	// recognized is set if that outcome is known when the operation was applied.
	recognized bool
}

func operations() []operation {
	create := func(path string, o recipes.CreateOptions) func(ctx context.Context, c *recipes.Client) error {
		return func(ctx context.Context, c *recipes.Client) error {
			created, err := c.Create(ctx, path, []byte("new"), o)
			if err == nil {
				// the znode exists when Create returns it
				_, _, err = c.Get(context.WithoutCancel(ctx), created)
			}
			return err
		}
	}
	set := func(version int32) func(ctx context.Context, c *recipes.Client) error {
		return func(ctx context.Context, c *recipes.Client) error {
			stat, err := c.Set(ctx, "/dir/z", []byte("new"), version)
			if err == nil && stat.Version < 1 {
				err = fmt.Errorf("version %d", stat.Version)
			}
			return err
		}
	}
	read := func(f func(ctx context.Context, c *recipes.Client) error) func(ctx context.Context, c *recipes.Client) error {
		return f
	}
	all := []operation{
		{name: "create", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{}), children: 2, data: "old", once: true},
		{name: "create ephemeral", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Ephemeral: true}), children: 2, data: "old", once: true, recognized: true},
		{name: "create container", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Container: true}), children: 2, data: "old", once: true},
		{name: "create ttl", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{TTL: time.Hour}), children: 2, data: "old", once: true},
		{name: "create sequential", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Sequential: true}), children: 2, data: "old", once: true},
		{name: "create protected", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Protected: true}), children: 2, data: "old"},
		{name: "create protected sequential", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Sequential: true, Protected: true}), children: 2, data: "old"},
		{name: "create protected ephemeral sequential", fault: zktest.Create, do: create("/dir/n", recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true}), children: 2, data: "old"},
		{name: "set", fault: zktest.Set, do: set(0), children: 1, data: "new", version: 1, once: true},
		{name: "set any", fault: zktest.Set, do: set(-1), children: 1, data: "new", version: 1, once: true},
		{name: "delete", fault: zktest.Delete, do: func(ctx context.Context, c *recipes.Client) error { return c.Delete(ctx, "/dir/z", 0) }, once: true},
		{name: "delete guaranteed", fault: zktest.Delete, do: func(ctx context.Context, c *recipes.Client) error { return c.DeleteGuaranteed(ctx, "/dir/z") }},
		{name: "multi", fault: zktest.Multi, do: func(ctx context.Context, c *recipes.Client) error {
			_, err := c.Multi(ctx, client.SetOp("/dir/z", []byte("new"), -1))
			return err
		}, children: 1, data: "new", version: 1, once: true},
		{name: "get", fault: zktest.Get, do: read(func(ctx context.Context, c *recipes.Client) error {
			_, _, _, err := c.GetW(ctx, "/dir/z")
			return err
		}), children: 1, data: "old"},
		{name: "exists", fault: zktest.Exists, do: read(func(ctx context.Context, c *recipes.Client) error {
			_, _, err := c.ExistsW(ctx, "/dir/z")
			return err
		}), children: 1, data: "old"},
		{name: "children", fault: zktest.Children, do: read(func(ctx context.Context, c *recipes.Client) error {
			_, _, _, err := c.ChildrenW(ctx, "/dir")
			return err
		}), children: 1, data: "old"},
	}
	for _, op := range all {
		if op.once && op.fault != zktest.Multi && op.name != "create sequential" {
			do := op.do
			op.do = func(ctx context.Context, c *recipes.Client) error { return do(ctx, c.Idempotent()) }
			op.name, op.once = "idempotent "+op.name, false
			all = append(all, op)
		}
	}
	return all
}

// each runs f for each operation and each kind of Client, in a bubble with its own server.
func each(t *testing.T, f func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client)) {
	for _, op := range operations() {
		for _, kind := range recipetest.Kinds() {
			t.Run(op.name+"/"+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := zktest.Start(t)
					s.Load(map[string]string{"/dir": "", "/dir/z": "old"})
					f(t, op, s, recipetest.Open(t, kind, s.Service, 20*time.Second))
				})
			})
		}
	}
}

// verify compares the znodes with their state after the operation was done this many times.
func (op operation) verify(t *testing.T, s *zktest.Service, times int) {
	t.Helper()
	want := operation{children: 1, data: "old"}
	if times > 0 {
		want = op
	}
	if op.name == "idempotent set any" && times > 1 {
		want.version = int32(times) // the operation is repeated to make sure
	}
	got := operation{}
	for path := range s.Tree("/dir") {
		if path != "/dir" {
			got.children++
		}
	}
	if z := s.Znode("/dir/z"); z != nil {
		got.data, got.version = string(z.Data), z.Stat.Version
	}
	if got.children != want.children || got.data != want.data || got.version != want.version {
		t.Errorf("%s: %d children, z is %q version %d; want %d, %q, %d", op.name,
			got.children, got.data, got.version, want.children, want.data, want.version)
	}
}

func TestLostReply(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		session := c.Session()
		f := s.DropReply(op.fault)
		err := op.do(t.Context(), c)
		f.Wait()
		switch {
		case op.once && !op.recognized && !errors.Is(err, recipes.ErrOutcomeUnknown):
			t.Errorf("error %v, want outcome unknown", err)
		case (!op.once || op.recognized) && err != nil:
			t.Error(err)
		}
		op.verify(t, s.Service, map[bool]int{false: 1, true: 2}[op.name == "idempotent set any"])
		if c.Session() != session || session.Context().Err() != nil {
			t.Error("the client has another session")
		}
	})
}

func TestLostReply_Twice(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		if op.once && !op.recognized {
			return
		}
		s.DropReply(op.fault, zktest.Times(2))
		// Also lose the answer to the read that checks whether the write was applied.
		s.DropReply(zktest.Children)
		s.DropReply(zktest.Get)
		if err := op.do(t.Context(), c); err != nil {
			t.Error(err)
		}
		s.ClearFaults()
		times := 1
		if op.name == "idempotent set any" {
			times = 3
		}
		op.verify(t, s.Service, times)
	})
}

func TestConnectionClosedBefore(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		s.Disconnect()
		err := op.do(t.Context(), c)
		switch {
		// the connection broke while the request was sent
		case op.once && errors.Is(err, recipes.ErrOutcomeUnknown):
			op.verify(t, s.Service, 0)
		case err != nil:
			t.Error(err)
		default:
			op.verify(t, s.Service, 1)
		}
	})
}

func TestServerKilled(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		s.Kill()
		var back sync.WaitGroup
		back.Go(func() { // ends when the server serves again
			time.Sleep(700 * time.Millisecond)
			s.Start()
		})
		defer back.Wait()
		err := op.do(t.Context(), c)
		if op.once && errors.Is(err, recipes.ErrOutcomeUnknown) {
			return
		}
		if err != nil {
			t.Error(err)
		}
		op.verify(t, s.Service, 1)
	})
}

// TestExpired checks that a request made when the session expires is done in the next session.
func TestExpired(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		old := c.Session()
		s.ExpireSession(old.ID())
		err := op.do(t.Context(), c)
		if err != nil && !op.once {
			t.Error(err)
		}
		if err == nil {
			op.verify(t, s.Service, 1)
		}
		for c.Session() == old { // after an unknown outcome the new session may take a moment
			time.Sleep(time.Millisecond)
		}
		if old.Context().Err() == nil || !errors.Is(context.Cause(old.Context()), recipes.ErrSessionLost) {
			t.Error("the session is lost and its Context is alive")
		}
		if c.Session().Context().Err() != nil {
			t.Error("there is no new session")
		}
	})
}

func TestStates(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		states := c.States(ctx)
		await := func(want ...recipes.ConnState) {
			t.Helper()
			for _, w := range want {
				if got := <-states; got != w {
					t.Fatalf("%v, want %v", got, w)
				}
			}
		}
		await(recipes.Connected)
		first := c.Session()
		s.Disconnect()
		await(recipes.Suspended, recipes.Reconnected)
		if c.Session() != first || first.Context().Err() != nil {
			t.Error("a live session was declared lost")
		}
		s.Partition()
		await(recipes.Suspended, recipes.Lost)
		if first.Context().Err() == nil || c.State() != recipes.Lost {
			t.Error("the client does not know that the session is lost")
		}
		s.Heal()
		await(recipes.Reconnected)
		s.ExpireSession(c.Session().ID())
		await(recipes.Suspended, recipes.Lost, recipes.Reconnected)
		cancel()
		for range states { // until it is closed
		}
		all := c.States(t.Context())
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		var got []recipes.ConnState
		for s := range all {
			got = append(got, s)
		}
		if want := []recipes.ConnState{recipes.Reconnected, recipes.Closed}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if _, _, err := c.Get(t.Context(), "/"); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		if !errors.Is(context.Cause(c.Session().Context()), recipes.ErrClosed) {
			t.Error(context.Cause(c.Session().Context()))
		}
	})
}

// TestAsleep suspends the machine, or stops the process, for longer than the timeout. A look at the
// session must show its end before any timer has run. If the server still has the session, the
// Client must close it.
func TestAsleep(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		var asleep time.Duration
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.SuspendedFor(func() time.Duration { return asleep }))
		if _, err := c.Create(t.Context(), "/e", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		session := c.Session()
		ctx, cancel := session.WithCancel()
		defer cancel(nil)
		synctest.Wait()
		asleep = 10 * time.Second
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), recipes.ErrSessionLost) || session.Remaining() != 0 {
			t.Error("the client does not know that the session is lost")
		}
		s.AssertExists("/e")
		for c.Session() == session || c.State() != recipes.Reconnected {
			time.Sleep(time.Millisecond)
		}
		s.AssertMissing("/e")
		if session.Context().Err() == nil {
			t.Error("the lost session is alive again")
		}
		if kind == "connect" && c.Session().ID() == session.ID() {
			t.Error("the lost session is used again")
		}
		if n := len(s.Sessions()); n != 1 {
			t.Errorf("the server has %d sessions", n)
		}
	})
}

// TestReconnect_KeepsSession checks that an outage shorter than half the timeout does not end the
// session. A wrapped connection needs another second, the pause of its host provider.
func TestReconnect_KeepsSession(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		const timeout = 10 * time.Second
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, timeout)
		session := c.Session()
		longest := timeout * 45 / 100
		if kind == "wrap" {
			longest -= time.Second
		}
		for outage := timeout / 20; outage <= longest; outage += exhaustive.Or(timeout/10, timeout/20) {
			for _, cut := range []struct{ begin, end func() }{{s.Kill, s.Start}, {s.Partition, s.Heal}, {s.Pause, s.Resume}} {
				cut.begin()
				time.Sleep(outage)
				cut.end()
				time.Sleep(2 * timeout)
				if c.Session() != session || session.Context().Err() != nil {
					t.Fatalf("after an outage of %v the session is lost", outage)
				}
				if state := c.State(); state != recipes.Connected && state != recipes.Reconnected {
					t.Fatalf("after an outage of %v the state is %v", outage, state)
				}
			}
		}
	})
}

// TestThrottled checks that a request is retried later when the server answers that it is
// overloaded and has done nothing.
func TestThrottled(t *testing.T) {
	each(t, func(t *testing.T, op operation, s *zktest.Server, c *recipes.Client) {
		const throttled = -127
		f := s.FailNext(op.fault, throttled, zktest.Times(2))
		if err := op.do(t.Context(), c); err != nil {
			t.Error(err)
		}
		f.Wait()
		op.verify(t, s.Service, 1)
	})
}
