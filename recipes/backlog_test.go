package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/zktest"
)

// slowConn is a connection that carries rate bytes per second in each direction.
type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.rate/50)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

func (c slowConn) Write(b []byte) (int, error) {
	for sent := 0; ; {
		n, err := c.Conn.Write(b[sent:min(len(b), sent+c.rate/50)])
		time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
		if sent += n; err != nil || sent == len(b) {
			return sent, err
		}
	}
}

// slowClient returns a Client whose connection carries rate bytes per second.
func slowClient(
	t testing.TB, kind recipetest.Kind, s *zktest.Service, timeout time.Duration, rate int,
) *recipes.Client {
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := s.Dialer()(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return slowConn{conn, rate}, nil
	}
	return recipetest.OpenWith(t, kind, s, timeout, dial, recipes.Retry(recipes.Forever(50*time.Millisecond)))
}

// backlog is what many goroutines ask of one Client at once.
type backlog struct {
	kind    recipetest.Kind
	members int
	timeout time.Duration
	rate    int // bytes per second
	size    int // bytes of a znode's data
	readers int // goroutines, each of which reads such a znode
	writers int // goroutines, each of which writes one
	waiters int // goroutines that wait for one lock
}

// mayReconnect reports whether single replies take so long that the Client may resume its session
// on another connection to prove that the session lives.
func (b backlog) mayReconnect() bool {
	return time.Duration(b.size)*time.Second/time.Duration(b.rate) > b.timeout/5
}

// TestLost_NotWhileTheServerAnswers: whatever is asked of a Client at once, and however slowly the
// answers come, the Client knows that its session lives.
func TestLost_NotWhileTheServerAnswers(t *testing.T) {
	exhaustive.Checks(t, 2, 20) // seconds of work each
	rapid.Check(t, func(rt *rapid.T) {
		b := backlog{
			kind:    rapid.SampledFrom(recipetest.Kinds()).Draw(rt, "kind"),
			members: rapid.SampledFrom([]int{1, 3}).Draw(rt, "members"),
			timeout: time.Duration(rapid.IntRange(4, 20).Draw(rt, "timeout")) * time.Second,
			rate:    rapid.SampledFrom([]int{1, 2, 4, 16}).Draw(rt, "megabytes per second") << 20,
			size:    rapid.SampledFrom([]int{10, 1000, 100_000, 1_000_000}).Draw(rt, "size"),
			waiters: rapid.SampledFrom([]int{0, 10, 100, exhaustive.Or(300, 1000)}).Draw(rt, "waiters"),
		}
		most := exhaustive.Or(min(500, 5_000_000/b.size), min(2000, 20_000_000/b.size))
		b.readers = rapid.IntRange(0, most).Draw(rt, "readers")
		b.writers = rapid.IntRange(0, most/5).Draw(rt, "writers")
		synctest.Test(t, b.run)
		if t.Failed() {
			rt.Fatalf("%+v", b)
		}
	})
}

func (b backlog) run(t *testing.T) {
	e := zktest.StartEnsemble(t, b.members)
	load := make(map[string]string)
	for i := range 20 {
		load[fmt.Sprintf("/data/%d", i)] = strings.Repeat("x", b.size)
	}
	e.Load(load)
	c := slowClient(t, b.kind, e.Service, b.timeout, b.rate)
	states := c.States(t.Context())
	begun := time.Now()
	var wg sync.WaitGroup
	many := func(n int, f func(i int) error) {
		for i := range n {
			wg.Go(func() {
				if err := f(i); err != nil && !(b.mayReconnect() && errors.Is(err, recipes.ErrOutcomeUnknown)) {
					t.Error(err)
				}
			})
		}
	}
	many(b.readers, func(i int) error {
		_, _, err := c.Get(t.Context(), fmt.Sprintf("/data/%d", i%20))
		return err
	})
	many(b.writers, func(i int) error {
		_, err := c.Set(t.Context(), fmt.Sprintf("/data/%d", i%20), make([]byte, b.size), -1)
		return err
	})
	m := lock.NewMutex(c, "/lock", nil)
	many(b.waiters, func(int) error {
		return m.With(t.Context(), func(context.Context) error { return nil })
	})
	wg.Wait()
	for len(states) > 0 {
		s := <-states
		if s != recipes.Connected && !b.mayReconnect() || s == recipes.Lost && b.kind == recipetest.Connect {
			t.Errorf("%+v: the Client became %v within %v", b, s, time.Since(begun))
		}
	}
}

// TestLost_NotWhenRepliesGrow reads many small znodes at once and then large ones, which were not
// expected. The Client resumes its session on another connection and asks again for less at once.
func TestLost_NotWhenRepliesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/small": "x", "/large": strings.Repeat("x", 1_000_000)})
		c := slowClient(t, recipetest.Connect, s.Service, 5*time.Second, 2<<20)
		session := c.Session()
		var wg sync.WaitGroup
		for _, path := range []string{"/small", "/large"} {
			for range map[string]int{"/small": 3000, "/large": 40}[path] {
				wg.Go(func() {
					if _, _, err := c.Get(t.Context(), path); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if c.Session() != session || session.Context().Err() != nil {
			t.Error("the session was given up")
		}
	})
}

// TestLost_NotWhileACacheReads reads a tree of large znodes below small ones.
func TestLost_NotWhileACacheReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		for i := range 20 {
			load := make(map[string]string)
			for j := range 5 {
				load[fmt.Sprintf("/tree/%d/%d", i, j)] = strings.Repeat("x", 200_000)
			}
			s.Load(load)
		}
		c := slowClient(t, recipetest.Connect, s.Service, 10*time.Second, 4<<20/3)
		states := c.States(t.Context())
		tree := cache.NewTree(c, "/tree", cache.TreeOptions{})
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tree.Wait(t.Context()); err != nil || len(tree.All()) != 1+20+100 {
			t.Errorf("%d znodes, %v", len(tree.All()), err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if len(states) > 1 {
			t.Error("the connection was given up")
		}
	})
}
