package recipes_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// kinds are the two ways to get a Client.
var kinds = []string{"connect", "wrap"}

// open returns a Client of a service that is closed with the test.
func open(t *testing.T, kind string, s *zktest.Service, timeout time.Duration, opts ...recipes.Option) *recipes.Client {
	t.Helper()
	var (
		c   *recipes.Client
		err error
	)
	servers := strings.Split(s.ConnectString(), ",")
	switch kind {
	case "connect":
		opts = append(opts, recipes.SessionTimeout(timeout), recipes.Dialer(s.Dialer()), recipes.Logger(newLogger(t)))
		c, err = recipes.Connect(t.Context(), servers, opts...)
	case "wrap":
		conn, events, e := zk.Connect(servers, timeout, zk.WithDialer(s.Dialer()), zk.WithLogger(newLogger(t)))
		if e != nil {
			t.Fatal(e)
		}
		t.Cleanup(conn.Close)
		c, err = recipes.Wrap(t.Context(), conn, events, timeout, append(opts, recipes.Logger(newLogger(t)))...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// logger writes to the test's log while the test runs: go-zookeeper's goroutines may end after it.
type logger struct {
	mu    sync.Mutex
	t     *testing.T
	ended bool
}

func newLogger(t *testing.T) *logger {
	l := &logger{t: t}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
	})
	return l
}

func (l *logger) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Logf("client: "+format, args...)
	}
}

// bubbles runs f for each kind, in a bubble.
func bubbles(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, kind) }) })
	}
}

func TestOperations(t *testing.T) {
	bubbles(t, func(t *testing.T, kind string) {
		s := zktest.Start(t)
		c := open(t, kind, s.Service, 10*time.Second)
		ctx := t.Context()
		if path, err := c.Create(ctx, "/a/b/c", []byte("x"), recipes.CreateOptions{Parents: true}); err != nil || path != "/a/b/c" {
			t.Fatalf("%q, %v", path, err)
		}
		s.AssertData("/a/b/c", "x")
		if _, err := c.Set(ctx, "/a/b/c", []byte("y"), 0); err != nil {
			t.Error(err)
		}
		if data, stat, err := c.Get(ctx, "/a/b/c"); err != nil || string(data) != "y" || stat.Version != 1 {
			t.Errorf("%q, %v", data, err)
		}
		if names, _, err := c.Children(ctx, "/a/b"); err != nil || len(names) != 1 || names[0] != "c" {
			t.Errorf("%q, %v", names, err)
		}
		if stat, err := c.Exists(ctx, "/none"); err != nil || stat != nil {
			t.Errorf("%v, %v", stat, err)
		}
		if err := c.Sync(ctx, "/a"); err != nil {
			t.Error(err)
		}
		if err := c.Delete(ctx, "/a/b/c", 0); !errors.Is(err, zk.ErrBadVersion) {
			t.Error(err)
		}
		if err := c.Delete(ctx, "/a/b/c", 1); err != nil {
			t.Error(err)
		}
		if err := c.DeleteGuaranteed(ctx, "/a/b/c"); err != nil {
			t.Error(err)
		}
		s.AssertMissing("/a/b/c")
	})
}
