package recipes_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// distant is a connection whose answers come late, those that arrive together at once.
type distant struct {
	net.Conn
	delay time.Duration
}

func (c distant) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.delay)
	return n, err
}

// TestReconnect_ManyUnderWay: when a server closes a connection with many requests under way, or
// does not answer any longer, they are repeated together.
func TestReconnect_ManyUnderWay(t *testing.T) {
	const callers, delay = 1000, 30 * time.Millisecond
	// A silent server is left after half of the session timeout.
	for silent, limit := range map[bool]time.Duration{false: time.Second, true: 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := zktest.Start(t)
			s.Load(map[string]string{"/a": "x"})
			b := &breaker{match: requests(proto.OpGetData), silent: silent}
			dial := b.dial(s.Service)
			far := func(network, address string, timeout time.Duration) (net.Conn, error) {
				conn, err := dial(network, address, timeout)
				return distant{conn, delay}, err
			}
			forever := recipes.Retry(recipes.Forever(50 * time.Millisecond))
			c := recipetest.OpenWith(t, recipetest.Connect, s.Service, 10*time.Second, far, forever)
			session := c.Session()
			all := func(f func(i int) error) time.Duration {
				begun := time.Now()
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						if err := f(i); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				return time.Since(begun)
			}
			get := func(int) error {
				_, _, err := c.Get(t.Context(), "/a")
				return err
			}
			for range 4 { // the window grows to all but some tens
				all(get)
			}
			b.left.Store(1)
			if took := all(func(i int) error {
				if i == callers/2 {
					return get(i)
				}
				_, err := c.Exists(t.Context(), fmt.Sprint("/", i))
				return err
			}); took > limit {
				t.Errorf("%d requests took %v", callers, took)
			}
			if b.left.Load() >= 0 || c.Session() != session {
				t.Error("no connection was broken, or the session was given up")
			}
		})
	}
}

// TestReconnect_ManyProtected: callers whose protected creates were lost together look for their
// znodes together.
func TestReconnect_ManyProtected(t *testing.T) {
	const callers, rounds = 500, 4
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c, h := w.OpenHooked(recipetest.Connect)
		create := func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					o := recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true}
					if _, err := c.Create(t.Context(), "/dir/a-", nil, o); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		for range rounds { // the window grows to all but some tens
			create()
		}
		h.Arm(nil, nil)
		w.DropReply(zktest.Create)
		create()
		lists := 0
		for _, r := range h.Requests() {
			if r.Op == "children" {
				lists++
			}
		}
		if lists == 0 || lists > 10 {
			t.Errorf("%d callers listed the directory %d times", callers, lists)
		}
		names, _, err := c.Children(t.Context(), "/dir")
		if err != nil || len(names) != (rounds+1)*callers {
			t.Errorf("%d znodes, %v", len(names), err)
		}
	})
}

// TestReconnect_ToClose: a Client that is closed while its connection is lost connects again and
// ends its session, which deletes its ephemerals.
func TestReconnect_ToClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
			conn, err := s.Dialer()(network, address, timeout)
			return distant{conn, 10 * time.Millisecond}, err
		}
		c := recipetest.OpenWith(t, recipetest.Connect, s.Service, 10*time.Second, dial)
		if _, err := c.Create(t.Context(), "/a", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		s.CloseConnections()
		begun := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		s.AssertMissing("/a")
	})
}
